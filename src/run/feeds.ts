import { types } from 'node:util';

import { elementTypeOfCode, elementTypeOfName, type ElementType } from '../tensor/element-types.js';
import { EngineTensor } from '../tensor/engine-tensor.js';
import { InferenceError, rangeError, typeError, type ErrorFields } from '../errors.js';
import { promiseHint, typeNameHint } from '../hints.js';
import { Kind, type NativeTensor, type NativeValueInfo } from '../native.js';
import {
  bitsOf,
  describe,
  isDataOf,
  isShared,
  lengthProblem,
  show,
  toStorage,
  type TensorStorage,
  type TypedArray,
} from '../tensor/tensor-data.js';
import type { WireWriter } from './wire.js';

/*
 * Feeds are handled in two steps, so that no user code (getters, proxies) runs between the check of a value and the
 * addon's copy of its bytes: `readValue` reads every property of the user's objects once, `checkValue` and `writeValue`
 * touch nothing of theirs but the internal slots of typed arrays.
 */

/** The value given for an input; what every object inherits ('constructor', '__proto__', ...) is none. */
export function feedOf(feeds: Readonly<Record<string, unknown>>, name: string): unknown {
  return name in Object.prototype && !Object.hasOwn(feeds, name) ? undefined : feeds[name];
}

/** A value whose every property has been read. */
export type RawValue =
  | { kind: 'none' }
  | { kind: 'tensor'; type: ElementType; dims: number[]; storage: TensorStorage }
  | { kind: 'handle'; handle: NativeTensor }
  | { kind: 'sequence'; items: RawValue[] }
  | { kind: 'map'; keys: RawTensor; values: RawTensor };
type RawTensor = Extract<RawValue, { kind: 'tensor' }>;

/**
 * Memory that an output is written into. `copy`: the engine cannot write there (strings, shared memory), so the result
 * is copied in JavaScript.
 */
export interface RawTarget {
  raw: Extract<RawValue, { kind: 'tensor' | 'handle' }>;
  copy: TypedArray | string[] | undefined;
}

type Role = 'input' | 'output';

/** What the addon takes. */
const mostDims = 1024;

/** Reads what the user gives for an input. */
export function readValue(value: unknown, info: NativeValueInfo): RawValue {
  if (value === null && info.optional) return { kind: 'none' };
  switch (info.kind) {
    case 'sequence':
      if (Array.isArray(value)) {
        const items = Array.from(value as unknown[], (item) =>
          types.isMap(item) ? readMap(item, info) : toRaw(readTensor(item, info, 'input'), info),
        );
        return { kind: 'sequence', items };
      }
      break;
    case 'map':
      if (types.isMap(value)) return readMap(value, info);
      break;
    default:
      return toRaw(readTensor(value, info, 'input'), info);
  }
  const expected = info.kind === 'map' ? 'a Map' : 'an array of tensors';
  throw typeError(`input '${info.name}' must be ${expected}, got ${describe(value)}.`, {
    input: info.name,
    expected,
    actual: describe(value),
  });
}

/** Reads the tensor that an output shall be written into. */
export function readTarget(value: unknown, info: NativeValueInfo): RawTarget {
  const tensor = readTensor(value, info, 'output');
  if (tensor.kind === 'handle') return { raw: tensor, copy: undefined };
  const { type, dims, data } = tensor;
  const inPlace = type.name === 'string' ? Array.isArray(data) : isDataOf(type, data);
  if (!inPlace) {
    const expected = type.name === 'string' ? 'an array of strings' : type.array;
    throw typeError(
      `output '${info.name}': the data of a preallocated ${type.name} tensor must be ${expected}, got ${describe(data)}.`,
      { output: info.name, expected, actual: describe(data) },
    );
  }
  const storage = data as TypedArray | string[];
  if (Array.isArray(storage) && Object.isFrozen(storage)) {
    throw typeError(`output '${info.name}': the data of a preallocated tensor must not be frozen.`, {
      output: info.name,
    });
  }
  if (Array.isArray(storage)) return { raw: { kind: 'tensor', type, dims, storage }, copy: storage };
  return {
    raw: { kind: 'tensor', type, dims, storage: bitsOf(type, storage) },
    copy: isShared(storage) ? bitsOf(type, storage) : undefined,
  };
}

/** A tensor whose properties have been read, but whose data may be of any kind. */
interface GivenTensor {
  kind: 'given';
  type: ElementType;
  dims: number[];
  data: unknown;
}

function toRaw(tensor: ReturnType<typeof readTensor>, info: NativeValueInfo): RawValue {
  if (tensor.kind === 'handle') return tensor;
  const { type, dims, data } = tensor;
  return { kind: 'tensor', type, dims, storage: toStorage(type, data, `input '${info.name}'`, { input: info.name }) };
}

function readTensor(
  value: unknown,
  info: NativeValueInfo,
  role: Role,
): GivenTensor | Extract<RawValue, { kind: 'handle' }> {
  const handle = typeof value === 'object' && value !== null ? EngineTensor.handleOf(value) : undefined;
  // The addon knows its type and dims.
  if (handle !== undefined && (value as EngineTensor).location !== 'none') return { kind: 'handle', handle };
  const what = `${role} '${info.name}'`;
  const fields = { [role]: info.name };
  if (typeof value !== 'object' || value === null) {
    throw typeError(`${what}: Tensor must be an object, got ${describe(value)}.`, fields);
  }
  if (handle !== undefined) throw disposed(what, fields);
  const tensor = value as { dims?: unknown; type?: unknown; location?: unknown; data?: unknown };
  const givenDims = tensor.dims;
  if (!Array.isArray(givenDims)) {
    const bare = Array.isArray(value) || ArrayBuffer.isView(value) || types.isAnyArrayBuffer(value);
    const hint = bare ? ` Wrap the ${describe(value)}: new Tensor(type, data, dims).` : promiseHint(value);
    throw typeError(`${what}: Tensor.dims must be an array, got ${describe(givenDims)}.${hint}`, fields);
  }
  if (givenDims.length > mostDims) {
    const [expected, actual] = [`at most ${mostDims} dims`, `${givenDims.length} dims`];
    throw new InferenceError('SHAPE_MISMATCH', `${what}: a tensor has ${expected}, got ${actual}.`, {
      ...fields,
      expected,
      actual,
    });
  }
  const dims = new Array<number>(givenDims.length);
  for (let i = 0; i < dims.length; i++) {
    const dim: unknown = givenDims[i];
    if (typeof dim !== 'number' || !Number.isSafeInteger(dim)) {
      throw typeError(`${what}: Tensor.dims[${i}] must be an integer, got ${show(dim)}.`, fields);
    }
    if (dim < 0) throw rangeError(`${what}: Tensor.dims[${i}] must be a non-negative integer, got ${dim}.`, fields);
    dims[i] = dim;
  }
  const typeName = tensor.type;
  if (typeof typeName !== 'string') {
    throw typeError(`${what}: Tensor.type must be a string, got ${describe(typeName)}.`, fields);
  }
  const type = elementTypeOfName(typeName);
  if (type === undefined)
    throw typeError(`${what}: Tensor.type is not supported: ${typeName}.${typeNameHint(typeName)}`, fields);
  const givenLocation = tensor.location;
  const location = givenLocation ?? 'cpu'; // tensors of onnxruntime 1.14 and older have none
  if (typeof location !== 'string') {
    throw typeError(`${what}: Tensor.location must be a string, got ${describe(location)}.`, fields);
  }
  if (location === 'none') throw disposed(what, fields);
  if (location !== 'cpu' && location !== 'cpu-pinned') {
    throw typeError(
      `${what}: a tensor of location '${location}' is not of this engine; its data must be on the CPU.`,
      fields,
    );
  }
  const { data } = tensor;
  if (data === undefined && 'cpuData' in value) {
    const message = `${what}: it looks like a tensor that postMessage copied, which is none: send its type, data and dims, and make one of them.`;
    throw typeError(message, fields);
  }
  if (givenLocation === undefined && Array.isArray(data) && type.name !== 'string') {
    throw typeError(
      `${what}: a ${type.name} tensor's data must be type of ${type.array}, got Array. Make it with new Tensor(type, data, dims).`,
      fields,
    );
  }
  return { kind: 'given', type, dims, data };
}

function disposed(what: string, fields: ErrorFields): RangeError {
  return rangeError(
    `${what}: Tensor.location is not supported. The tensor is disposed: its data is gone, make a new one.`,
    fields,
    'DISPOSED',
  );
}

function readMap(map: Map<unknown, unknown>, info: NativeValueInfo): RawValue {
  const what = `input '${info.name}'`;
  const fields = { input: info.name };
  const entries = Array.from(Map.prototype.entries.call(map) as Iterable<[unknown, unknown]>);
  // Numbers are welcome as int64 keys; others are refused by toStorage.
  const keys = entries.map(([key]) => (Number.isSafeInteger(key) ? BigInt(key as number) : key));
  const values = entries.map(([, value]) => value);
  const keyType = elementTypeOfName(keys.every((key) => typeof key === 'string') ? 'string' : 'int64') as ElementType;
  const valueType = elementTypeOfCode(info.elementType);
  if (valueType === undefined) throw typeError(`${what}: maps of this type cannot be fed.`, fields);
  const array = (type: ElementType, items: unknown[]): RawTensor => {
    const plain = scalarArray(type, items);
    return { kind: 'tensor', type, dims: [items.length], storage: toStorage(type, plain, what, fields) };
  };
  return { kind: 'map', keys: array(keyType, keys), values: array(valueType, values) };
}

function scalarArray(type: ElementType, items: unknown[]): unknown {
  if (!items.every((item) => typeof item === 'number')) return items; // refused by toStorage
  switch (type.name) {
    case 'float32':
      return Float32Array.from(items);
    case 'float64':
      return Float64Array.from(items);
    case 'int32':
      return Int32Array.from(items);
    default:
      return items;
  }
}

/** Checks the amount of data, which the addon does not see; types and shapes are the addon's to check. */
export function checkValue(raw: RawValue, info: NativeValueInfo, role: Role = 'input'): void {
  if (raw.kind === 'sequence') {
    for (const item of raw.items) checkValue(item, info, role);
  }
  if (raw.kind !== 'tensor') return;
  const size = raw.dims.reduce((product, dim) => product * dim, 1);
  const problem = lengthProblem(raw.type, raw.storage, size);
  if (problem !== undefined) {
    throw new InferenceError(
      'INVALID_ARGUMENT',
      `${role} '${info.name}': the data of a ${raw.type.name} tensor of dims [${raw.dims.join(',')}] does not fit: ${problem}.`,
      { [role]: info.name },
    );
  }
}

/** Puts a checked value into the wire form. */
export function writeValue(writer: WireWriter, raw: RawValue): void {
  switch (raw.kind) {
    case 'none':
      writer.number(Kind.None);
      break;
    case 'tensor':
      writer.tensor(raw.type.code, raw.dims, raw.storage);
      break;
    case 'handle':
      writer.number(Kind.Handle);
      writer.item(raw.handle);
      break;
    case 'sequence':
      writer.number(Kind.Sequence);
      writer.number(raw.items.length);
      for (const item of raw.items) writeValue(writer, item);
      break;
    case 'map':
      writer.number(Kind.Map);
      writeValue(writer, raw.keys);
      writer.number(-1);
      writeValue(writer, raw.values);
      break;
  }
}
