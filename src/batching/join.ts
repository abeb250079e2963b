import type { Tensor as CommonTensor } from 'onnxruntime-common';

import { InferenceError } from '../errors.js';
import { arrayLength, elementTypeOfName, type ElementType } from '../tensor/element-types.js';
import { Tensor } from '../tensor/tensor.js';
import { bitsOf, wrapBuffer, type TensorStorage, type TypedArray } from '../tensor/tensor-data.js';
import type { BatchShape, Given, Piece } from './batch-shape.js';
import type { ParsedBatcherOptions, PaddingRule } from './batcher-options.js';
import { copyBlock } from './blocks.js';

type Feeds = Record<string, CommonTensor>;

/** The feeds of one run of all calls, joined along the axis, sequences padded to the longest. */
export function join(calls: readonly Given[], { axis, padding }: ParsedBatcherOptions): Feeds {
  const [first] = calls as [Given];
  const feeds = Object.fromEntries(first.shared) as Feeds;
  for (const [name, { type }] of first.pieces) {
    const pieces = calls.map((call) => call.pieces.get(name) as Piece);
    const [only] = pieces as [Piece];
    feeds[name] = pieces.length === 1 ? tensorOf(only) : tensorOf(joined(pieces, type, axis, padding.get(name)));
  }
  return feeds;
}

function joined(pieces: readonly Piece[], type: ElementType, axis: number, rule: PaddingRule | undefined): Piece {
  const dims = [...(pieces[0] as Piece).dims];
  dims[axis] = sum(pieces.map((piece) => piece.dims[axis] as number));
  if (rule !== undefined) dims[rule.axis] = Math.max(...pieces.map((piece) => piece.dims[rule.axis] as number));
  const padded = rule !== undefined && pieces.some((piece) => piece.dims[rule.axis] !== dims[rule.axis]);
  const data = filled(type, dims, padded ? rule.value : undefined);
  const start = dims.map(() => 0);
  for (const piece of pieces) {
    const whole = { data: piece.data, dims: piece.dims, start: dims.map(() => 0) };
    copyBlock(whole, { data, dims, start }, piece.dims, arrayLength(type, 1));
    start[axis] = (start[axis] as number) + (piece.dims[axis] as number);
  }
  return { type, dims, data };
}

/** The answers of each call. Throws SHAPE_MISMATCH for an output that has not one row for each that was given. */
export function split(
  results: Readonly<Record<string, unknown>>,
  calls: readonly Given[],
  shape: BatchShape,
  { axis, padding }: ParsedBatcherOptions,
): Feeds[] {
  const rows = sum(calls.map((call) => call.rows));
  const answers = calls.map((): Feeds => ({}));
  for (const [name, value] of Object.entries(results)) {
    const whole = value as CommonTensor;
    if (whole.dims[axis] !== rows) {
      const [expected, actual] = [`${rows} rows along axis ${axis}`, `[${whole.dims.join()}]`];
      const message = `output '${name}' of a batch is ${actual}, which cannot be cut into answers: ${expected} were given.`;
      throw new InferenceError('SHAPE_MISMATCH', message, { output: name, expected, actual });
    }
    const type = elementTypeOfName(whole.type) as ElementType;
    const storage = Array.isArray(whole.data) ? whole.data : bitsOf(type, whole.data as TypedArray);
    let row = 0;
    calls.forEach((call, i) => {
      const dims = [...whole.dims];
      const start = dims.map(() => 0);
      dims[axis] = call.rows;
      start[axis] = row;
      for (const cut of shape.cuts.get(name) ?? []) {
        const length = call.pieces.get(cut.input)?.dims[padding.get(cut.input)?.axis ?? 0];
        if (length !== undefined && length < (dims[cut.axis] ?? 0)) dims[cut.axis] = length;
      }
      const data = filled(type, dims, undefined);
      const to = { data, dims, start: dims.map(() => 0) };
      copyBlock({ data: storage, dims: whole.dims, start }, to, dims, arrayLength(type, 1));
      (answers[i] as Feeds)[name] = tensorOf({ type, dims, data });
      row += call.rows;
    });
  }
  return answers;
}

function filled(type: ElementType, dims: readonly number[], value: PaddingRule['value']): TensorStorage {
  const length = arrayLength(type, product(dims));
  if (type.array === 'Array') return new Array<string>(length).fill(String(value ?? ''));
  const array = wrapBuffer(type.array, new ArrayBuffer(arrayLength(type, product(dims)) * bytesPer(type)));
  if (value !== undefined && value !== 0) {
    const wide = type.array.startsWith('Big');
    (array as TypedArray & { fill(value: unknown): void }).fill(wide ? BigInt(value) : Number(value));
  }
  return array;
}

const bytesPer = (type: ElementType): number => type.bits / 8 / arrayLength(type, 1);
const tensorOf = ({ type, dims, data }: Piece): CommonTensor => new Tensor(type.name as 'float32', data as never, dims);
const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);
const product = (numbers: readonly number[]): number => numbers.reduce((a, b) => a * b, 1);
