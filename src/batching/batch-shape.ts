import { callNative, InferenceError, rangeError, typeError } from '../errors.js';
import { nameHint } from '../hints.js';
import type { NativeSession, NativeValueInfo } from '../native.js';
import { warnOnce } from '../options/option-names.js';
import { checkValue, feedOf, readValue } from '../run/feeds.js';
import { missingInput } from '../run/missing-input.js';
import { arrayLength, elementTypeOfCode, type ElementType } from '../tensor/element-types.js';
import { sizeOf } from '../tensor/tensor.js';
import { show, type TensorStorage } from '../tensor/tensor-data.js';
import type { PaddingRule, ParsedBatcherOptions } from './batcher-options.js';
import { canFill } from './fill.js';

/** One input of a call: its own copy of the elements. */
export interface Piece {
  type: ElementType;
  dims: readonly number[];
  data: TensorStorage;
}

/** What a call gives. */
export interface Given {
  rows: number;
  pieces: ReadonlyMap<string, Piece>;
  /** By name; what `shared` lists. */
  shared: ReadonlyMap<string, unknown>;
  /** Calls of one key can be joined. */
  key: string;
}

/** What `createBatcher` asks of a session. */
type Session = Pick<NativeSession, 'inputs' | 'outputs' | 'joinedRows'>;

/** What a session's batches consist of: which inputs have rows, which axes are padded, which outputs are cut. */
export class BatchShape {
  readonly #inputs: readonly NativeValueInfo[];
  readonly #names: readonly string[];
  readonly #numbers = new WeakMap<object, number>();
  #lastNumber = 0;
  /** By output: the axes that are cut, and by which input. */
  readonly cuts: ReadonlyMap<string, readonly { axis: number; input: string }[]>;

  /** Throws RangeError for names that the model lacks, and INVALID_ARGUMENT for a model that has no rows to join. */
  constructor(
    session: Session,
    private readonly options: ParsedBatcherOptions,
  ) {
    const { inputs, outputs } = session;
    const { padding, unpadding, shared } = options;
    this.#inputs = inputs;
    this.#names = inputs.filter(({ overridable }) => !overridable).map(({ name }) => name);
    const all = inputs.map(({ name }) => name);
    for (const name of [...padding.keys(), ...shared]) checkName(name, all, 'input');
    const outputNames = outputs.map(({ name }) => name);
    for (const name of [...unpadding.keys(), ...(options.outputs ?? [])]) checkName(name, outputNames, 'output');
    for (const { input } of unpadding.values()) checkName(input, [...padding.keys()], 'padded input');
    for (const info of inputs) this.#checkPadding(info, padding.get(info.name));
    for (const info of outputs) this.#checkAxis(info, unpadding.get(info.name), 'unpadding');
    const joined = inputs.filter(({ name, overridable }) => !overridable && !shared.includes(name));
    const cut = outputs.filter(({ name }) => options.outputs?.includes(name) ?? true);
    for (const info of joined) this.#checkRows(info, 'input');
    for (const info of cut) this.#checkRows(info, 'output');
    this.#checkOtherAxes(joined, cut);
    this.#checkInference(session, joined, cut);
    for (const [name, rule] of padding) this.#warnOfUnpadded(name, rule.axis);
    this.cuts = new Map(outputs.map((info) => [info.name, this.#cutsOf(info)]));
  }

  /** Reads a call's feeds, of which it keeps copies. Throws what `run` rejects with. */
  read(feeds: Readonly<Record<string, unknown>>): Given {
    const { axis, padding, shared: sharedNames } = this.options;
    const pieces = new Map<string, Piece>();
    const shared = new Map<string, unknown>();
    let rows: number | undefined;
    let key = '';
    const lengths = new Map<string, { name: string; length: number }>(); // of padded axes, by their name in the model
    for (const info of this.#inputs) {
      const { name } = info;
      const value = feedOf(feeds, name);
      if (value === undefined) {
        if (!info.overridable) throw missingInput(name, feeds, this.#names);
        continue;
      }
      if (info.overridable || sharedNames.includes(name)) {
        shared.set(name, value);
        key += `${name}:${this.#numberOf(value)};`;
        continue;
      }
      const piece = this.#readPiece(value, info);
      const size = piece.dims[axis] as number;
      if (rows !== undefined && rows !== size) {
        const [expected, actual] = [`${rows} rows`, `${size} rows`];
        const message = `input '${name}' has ${actual} along axis ${axis}, the inputs before it have ${expected}.`;
        throw new InferenceError('SHAPE_MISMATCH', message, { input: name, expected, actual });
      }
      rows = size;
      pieces.set(name, piece);
      const padded = padding.get(name)?.axis;
      if (padded !== undefined) checkLength(info, padded, piece.dims[padded] as number, lengths);
      key += `${name}:${piece.type.name}[${piece.dims.map((dim, i) => (i === axis || i === padded ? '*' : dim)).join()}];`;
    }
    if (rows === undefined) throw new InferenceError('INVALID_ARGUMENT', 'None of the inputs has rows to join.');
    return { rows, pieces, shared, key };
  }

  #readPiece(value: unknown, info: NativeValueInfo): Piece {
    const { name } = info;
    const raw = readValue(value, info);
    checkValue(raw, info);
    if (raw.kind !== 'tensor') {
      throw typeError(`input '${name}' must be a tensor in JavaScript's memory to be joined.`, { input: name });
    }
    const { type, dims, storage } = raw;
    const declared = elementTypeOfCode(info.elementType);
    if (declared !== undefined && declared !== type) {
      const message = `input '${name}': Unexpected input data type. Actual: ${type.name}, expected: ${declared.name}`;
      throw new InferenceError('INVALID_ARGUMENT', message, {
        input: name,
        expected: declared.name,
        actual: type.name,
      });
    }
    const fits = info.shape?.every((dim, i) => typeof dim === 'string' || dim === dims[i]) ?? true;
    if (!fits || (info.shape !== null && info.shape.length !== dims.length) || dims.length <= this.options.axis) {
      const expected = `[${info.shape?.map((dim) => dim || '?').join() ?? `more than ${this.options.axis} dims`}]`;
      const actual = `[${dims.join()}]`;
      const message = `Got invalid dimensions for input: ${name}: ${actual} for ${expected}.`;
      throw new InferenceError('SHAPE_MISMATCH', message, { input: name, expected, actual });
    }
    return { type, dims, data: storage.slice(0, arrayLength(type, sizeOf(dims))) };
  }

  #numberOf(value: unknown): number {
    if (typeof value !== 'object' || value === null) return 0;
    let number = this.#numbers.get(value);
    if (number === undefined) this.#numbers.set(value, (number = ++this.#lastNumber));
    return number;
  }

  /** Throws RangeError for an axis that the value does not have, or along which calls are joined. */
  #checkAxis({ name, shape }: NativeValueInfo, rule: { axis: number } | undefined, what: string): void {
    if (rule === undefined) return;
    const wrong =
      rule.axis === this.options.axis
        ? 'is the one along which calls are joined'
        : shape !== null && rule.axis >= shape.length
          ? `is none of ${shape.length} dims`
          : undefined;
    if (wrong !== undefined) throw rangeError(`Invalid batcher options: '${what}.${name}.axis' ${rule.axis} ${wrong}.`);
  }

  #checkPadding(info: NativeValueInfo, rule: PaddingRule | undefined): void {
    this.#checkAxis(info, rule, 'padding');
    const type = elementTypeOfCode(info.elementType);
    if (rule?.value === undefined || type === undefined) return;
    const plain = ['number', 'bigint', 'boolean', 'string'].includes(typeof rule.value);
    if (plain && canFill(type, rule.value)) return;
    throw rangeError(`Invalid batcher options: 'padding.${info.name}.value' is no ${type.name}: ${show(rule.value)}.`);
  }

  #checkRows({ name, kind, optional, elementType, shape }: NativeValueInfo, role: 'input' | 'output'): void {
    const { axis } = this.options;
    const type = elementTypeOfCode(elementType);
    const rows = shape?.[axis];
    const what =
      kind !== 'tensor' || optional
        ? 'is no tensor'
        : type !== undefined && type.bits > 0 && type.bits < 8
          ? `is packed ${type.name}`
          : shape !== null && shape.length <= axis
            ? `has no axis ${axis}`
            : typeof rows === 'number'
              ? `has a fixed size of ${rows} along axis ${axis}`
              : undefined;
    if (what === undefined) return;
    const hint = role === 'input' ? " Name it in 'shared' if all calls give one." : " Name others in 'outputs'.";
    throw new InferenceError('INVALID_ARGUMENT', `Calls cannot be joined: ${role} '${name}' ${what}.${hint}`, {
      [role]: name,
    });
  }

  /** Throws INVALID_ARGUMENT where the rows of one value are, by their name in the model, the size of another axis. */
  #checkOtherAxes(inputs: readonly NativeValueInfo[], outputs: readonly NativeValueInfo[]): void {
    const { axis } = this.options;
    const values = [
      ...inputs.map((info) => ({ info, role: 'input' })),
      ...outputs.map((info) => ({ info, role: 'output' })),
    ];
    for (const { info, role } of values) {
      const rows = info.shape?.[axis];
      if (typeof rows !== 'string' || rows === '') continue;
      for (const other of values) {
        const same = other.info.shape?.findIndex((dim, i) => dim === rows && i !== axis) ?? -1;
        if (same < 0) continue;
        const message = `Calls cannot be joined: ${role} '${info.name}' has '${rows}' along axis ${axis}, which is the size of axis ${same} of ${other.role} '${other.info.name}', too.`;
        throw new InferenceError('INVALID_ARGUMENT', message, { [role]: info.name });
      }
    }
  }

  /** Throws INVALID_ARGUMENT where inference does not say that what is cut are the rows that were joined. */
  #checkInference(session: Session, inputs: readonly NativeValueInfo[], cut: readonly NativeValueInfo[]): void {
    const { axis } = this.options;
    const names = inputs.map(({ name }) => name);
    const found = callNative(() => session.joinedRows(names, axis));
    for (const [i, { name }] of session.outputs.entries()) {
      if (found[i] === 'rows' || cut.every((info) => info.name !== name)) continue;
      const what =
        found[i] === 'other'
          ? 'another size than the rows of the inputs'
          : 'a size of which nothing says that it is the rows of the inputs: data may decide it';
      const message = `Calls cannot be joined: output '${name}' has along axis ${axis} ${what}. Name others in 'outputs'.`;
      throw new InferenceError('INVALID_ARGUMENT', message, { output: name });
    }
  }

  /** Warns of inputs that have an axis by the name of one that is padded, and are not padded themselves. */
  #warnOfUnpadded(name: string, axis: number): void {
    const { padding, shared } = this.options;
    const symbol = this.#inputs.find((info) => info.name === name)?.shape?.[axis];
    if (typeof symbol !== 'string' || symbol === '') return;
    for (const other of this.#inputs) {
      const same = other.shape?.indexOf(symbol) ?? -1;
      if (same < 0 || other.overridable || padding.has(other.name) || shared.includes(other.name)) continue;
      const message = `'padding' has input '${name}' and lacks '${other.name}', whose axis ${same} is '${symbol}' too: calls of other lengths are not joined.`;
      warnOnce(`padding.${other.name}`, `${message} Add { '${other.name}': { axis: ${same} } }.`);
    }
  }

  #cutsOf({ name, shape }: NativeValueInfo): { axis: number; input: string }[] {
    const { padding, unpadding } = this.options;
    const given = unpadding.get(name);
    if (given !== undefined) return [given];
    const cuts: { axis: number; input: string }[] = [];
    for (const [input, rule] of padding) {
      const symbol = this.#inputs.find((info) => info.name === input)?.shape?.[rule.axis];
      if (typeof symbol !== 'string' || symbol === '') continue;
      shape?.forEach((dim, axis) => {
        if (dim === symbol && cuts.every((cut) => cut.axis !== axis)) cuts.push({ axis, input });
      });
    }
    return cuts;
  }
}

/** Throws SHAPE_MISMATCH where a call's inputs differ in a length that padding would make the same. */
function checkLength(
  { name, shape }: NativeValueInfo,
  axis: number,
  length: number,
  lengths: Map<string, { name: string; length: number }>,
): void {
  const symbol = shape?.[axis];
  if (typeof symbol !== 'string' || symbol === '') return;
  const before = lengths.get(symbol);
  if (before === undefined) {
    lengths.set(symbol, { name, length });
  } else if (before.length !== length) {
    const message = `input '${name}' has ${length} along axis ${axis} ('${symbol}'), input '${before.name}' has ${before.length}.`;
    const [expected, actual] = [String(before.length), String(length)];
    throw new InferenceError('SHAPE_MISMATCH', message, { input: name, expected, actual });
  }
}

function checkName(name: string, names: readonly string[], role: string): void {
  if (!names.includes(name)) throw rangeError(`There is no ${role} '${name}'.${nameHint(name, names, `${role}s`)}`);
}
