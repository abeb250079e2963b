import { types } from 'node:util';

import { arrayLength, type ArrayName, type ElementType } from './element-types.js';
import { typeError } from '../errors.js';

/** Data of a tensor as the addon takes it: the bytes of a typed array, or strings. */
export type TensorStorage = TypedArray | string[];

export type TypedArray =
  | Float32Array
  | Float64Array
  | Int8Array
  | Uint8Array
  | Uint8ClampedArray
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array;

interface TypedArrayConstructor {
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBufferLike, byteOffset?: number, length?: number): TypedArray;
}

type TypedArrayName = Exclude<ArrayName, 'Array'>;

const constructors: Readonly<Record<TypedArrayName, TypedArrayConstructor>> = {
  Float32Array,
  Float64Array,
  Int8Array,
  Uint8Array,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  BigInt64Array,
  BigUint64Array,
};

// The getters of %TypedArray%.prototype work on arrays of any realm and cannot be replaced by the user's objects.
const prototype = Object.getPrototypeOf(Uint8Array.prototype) as object;
function intrinsic<T>(key: PropertyKey): (array: unknown) => T {
  const getter = Object.getOwnPropertyDescriptor(prototype, key)?.get as () => T;
  return (array) => Reflect.apply(getter, array, []);
}
/** 'Float32Array', ... for typed arrays of any realm, undefined for anything else. */
export const typedArrayName = intrinsic<string | undefined>(Symbol.toStringTag);
const lengthOf = intrinsic<number>('length');
const bufferOf = intrinsic<ArrayBufferLike>('buffer');
const byteOffsetOf = intrinsic<number>('byteOffset');
const byteLengthOf = intrinsic<number>('byteLength');

/** Whether `value` is a typed array, of whatever realm. */
export function isTypedArray(value: unknown): value is TypedArray {
  return typedArrayName(value) !== undefined;
}

/** The bytes of any typed array as a view of this realm; none where its buffer was detached. */
export function bytesOf(array: unknown): Uint8Array {
  const length = byteLengthOf(array);
  return length === 0 ? new Uint8Array(0) : new Uint8Array(bufferOf(array), byteOffsetOf(array), length);
}

/** `array` itself if it is a `name` of this realm, otherwise a view of the same bytes that is. */
export function viewAs(name: TypedArrayName, array: TypedArray): TypedArray {
  const constructor = constructors[name];
  if (array instanceof constructor) return array;
  const length = Math.floor(byteLengthOf(array) / constructor.BYTES_PER_ELEMENT);
  if (length === 0) return new constructor(new ArrayBuffer(0)); // a detached buffer cannot be viewed
  return new constructor(bufferOf(array), byteOffsetOf(array), length);
}

/** `value`, or a view of this realm if it is a typed array of another. */
export function inThisRealm(value: unknown): unknown {
  const name = typedArrayName(value);
  return name !== undefined && name in constructors ? viewAs(name as TypedArrayName, value as TypedArray) : value;
}

/** The typed array of `name` over all of `buffer`. */
export function wrapBuffer(name: TypedArrayName, buffer: ArrayBufferLike): TypedArray {
  return new constructors[name](buffer);
}

/** So many entries of 0 or '', as tensors of `type` hold them. Throws RangeError where there is no memory for them. */
export function zeros(type: ElementType, length: number): TensorStorage {
  if (type.array === 'Array') return new Array<string>(length).fill('');
  const bytesPer = type.bits < 8 ? 1 : type.bits / 8 / type.perElement;
  return wrapBuffer(type.array, new ArrayBuffer(length * bytesPer));
}

/** Whether a typed array lies in a SharedArrayBuffer. */
export function isShared(array: TypedArray): boolean {
  return types.isSharedArrayBuffer(bufferOf(array));
}

/** Whether `data` is a typed array that holds elements of `type` as they are. */
export function isDataOf(type: ElementType, data: unknown): data is TypedArray {
  const tag = typedArrayName(data);
  return tag !== undefined && holds(type, tag);
}

/** `data`, as the addon takes it: Node-API does not know Float16Array, so it sees the bits. */
export function bitsOf(type: ElementType, data: TypedArray): TypedArray {
  return type.name === 'float16' ? viewAs('Uint16Array', data) : data;
}

/** Whether an array named `tag` holds elements of `type` as they are. */
function holds(type: ElementType, tag: string): boolean {
  if (tag === type.array) return true;
  switch (type.name) {
    case 'float16':
      return tag === 'Float16Array';
    case 'uint8':
      return tag === 'Uint8ClampedArray';
    case 'int4':
    case 'int2':
      return tag === 'Int8Array';
    default:
      return false;
  }
}

const integerArrays = new Set(['Int8Array', 'Uint8Array', 'Int16Array', 'Uint16Array', 'Int32Array', 'Uint32Array']);

/**
 * Data for a tensor of `type` in the typed array that the addon takes, shared with the caller's where it fits. int64
 * and uint64 also take numbers, in an array or a typed array of integers; shared memory is copied, because another
 * thread may change it. Throws TypeError on any other data; `what` begins the message.
 */
export function toStorage(type: ElementType, data: unknown, what: string, fields?: { input?: string }): TensorStorage {
  if (type.name === 'string') {
    if (!Array.isArray(data)) throw typeError(`${what}: a string tensor's data must be a string array.`, fields);
    return copyStrings(data, what, fields);
  }
  if (isDataOf(type, data)) {
    return isShared(data) ? viewAs(type.array as TypedArrayName, bytesOf(data).slice()) : bitsOf(type, data);
  }
  const converted = toBigInts(type, typedArrayName(data) ?? (Array.isArray(data) ? 'Array' : ''), data);
  if (converted !== undefined) return converted;
  throw typeError(`${what}: a ${type.name} tensor's data must be type of ${type.array}, got ${describe(data)}.`, {
    ...fields,
    expected: type.array,
    actual: describe(data),
  });
}

/** Entries of `storage`. */
export function storageLength(storage: TensorStorage): number {
  return Array.isArray(storage) ? storage.length : lengthOf(storage);
}

/**
 * What is wrong with `storage` as the data of `size` elements; undefined if nothing is. Surplus entries are fine, as
 * for onnxruntime-node, but not for packed types, where they are likely elements that were not packed.
 */
export function lengthProblem(type: ElementType, storage: TensorStorage, size: number): string | undefined {
  const expected = arrayLength(type, size);
  const actual = storageLength(storage);
  if (actual === expected) return undefined;
  if (Array.isArray(storage)) return actual > expected ? undefined : `expected ${expected} strings, got ${actual}`;
  const packed = type.bits < 8;
  if (actual > expected && !packed) return undefined;
  const width = constructors[type.array as TypedArrayName].BYTES_PER_ELEMENT;
  const hint = packed
    ? ` (${type.name} data is packed, ${type.bits === 6 ? '4 elements to 3 bytes' : `${8 / type.bits} elements to a byte`})`
    : actual === 0
      ? ' (is its ArrayBuffer detached?)'
      : '';
  const what = actual < expected ? 'not enough space' : 'too much data';
  return `${what}: expected ${expected * width}, got ${actual * width}${hint}`;
}

/** "Int32Array", "an Array", "null", "number", ...: for messages. */
export function describe(value: unknown): string {
  if (value === null) return 'null';
  const tag = typedArrayName(value);
  if (tag !== undefined) return tag;
  if (Array.isArray(value)) return 'Array';
  if (typeof value !== 'object') return typeof value;
  return types.isAnyArrayBuffer(value) ? 'ArrayBuffer' : 'object';
}

/** number[] or integer arrays for the 64-bit integers; undefined where that does not apply. */
export function toBigInts(type: ElementType, tag: string, data: unknown): TypedArray | undefined {
  if (type.bits !== 64 || (type.name !== 'int64' && type.name !== 'uint64')) return undefined;
  if (tag !== 'Array' && !integerArrays.has(tag)) return undefined;
  const values = data as ArrayLike<number | bigint>;
  // BigInt() throws RangeError on fractions and TypeError on undefined, as it does for onnxruntime-common.
  return type.name === 'int64' ? BigInt64Array.from(values, BigInt) : BigUint64Array.from(values, BigInt);
}

/** `value` as text where that runs none of the user's code, otherwise what it is: for messages. */
export function show(value: unknown): string {
  return typeof value === 'object' || typeof value === 'function' ? describe(value) : String(value);
}

function copyStrings(data: readonly unknown[], what: string, fields?: { input?: string }): string[] {
  const strings = new Array<string>(data.length);
  for (let i = 0; i < strings.length; i++) {
    const text = data[i];
    if (typeof text !== 'string') {
      throw typeError(`${what}: element ${i} of a string tensor must be a string, got ${describe(text)}.`, fields);
    }
    strings[i] = text;
  }
  return strings;
}
