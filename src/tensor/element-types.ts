import type { Tensor } from 'onnxruntime-common';

/**
 * How one ONNX element type looks from JavaScript. `array` names the typed array that holds it; `perElement` is the
 * number of array entries per element (2 for complex numbers, stored as real and imaginary parts); types of fewer than
 * 8 bits are packed, low bits first, as in ONNX's raw data.
 */
export interface ElementType {
  readonly code: number;
  readonly name: Tensor.Type;
  /** ONNX's own spelling, as in `tensor(float)`. */
  readonly onnxName: string;
  readonly bits: number;
  readonly array: ArrayName;
  readonly perElement: 1 | 2;
  /** False for the types that the Tensor class of onnxruntime-common cannot construct. */
  readonly common: boolean;
}

export type ArrayName =
  | 'Float32Array'
  | 'Float64Array'
  | 'Int8Array'
  | 'Uint8Array'
  | 'Int16Array'
  | 'Uint16Array'
  | 'Int32Array'
  | 'Uint32Array'
  | 'BigInt64Array'
  | 'BigUint64Array'
  | 'Array';

type Row = readonly [Tensor.Type, string, number, ArrayName, common?: boolean, perElement?: 1 | 2];

// In the order of ONNX's TensorProto.DataType, from 1.
const rows: readonly Row[] = [
  ['float32', 'float', 32, 'Float32Array'],
  ['uint8', 'uint8', 8, 'Uint8Array'],
  ['int8', 'int8', 8, 'Int8Array'],
  ['uint16', 'uint16', 16, 'Uint16Array'],
  ['int16', 'int16', 16, 'Int16Array'],
  ['int32', 'int32', 32, 'Int32Array'],
  ['int64', 'int64', 64, 'BigInt64Array'],
  ['string', 'string', 0, 'Array'],
  ['bool', 'bool', 8, 'Uint8Array'],
  ['float16', 'float16', 16, 'Uint16Array'],
  ['float64', 'double', 64, 'Float64Array'],
  ['uint32', 'uint32', 32, 'Uint32Array'],
  ['uint64', 'uint64', 64, 'BigUint64Array'],
  ['complex64', 'complex64', 64, 'Float32Array', false, 2],
  ['complex128', 'complex128', 128, 'Float64Array', false, 2],
  ['bfloat16', 'bfloat16', 16, 'Uint16Array', false],
  ['float8e4m3fn', 'float8e4m3fn', 8, 'Uint8Array', false],
  ['float8e4m3fnuz', 'float8e4m3fnuz', 8, 'Uint8Array', false],
  ['float8e5m2', 'float8e5m2', 8, 'Uint8Array', false],
  ['float8e5m2fnuz', 'float8e5m2fnuz', 8, 'Uint8Array', false],
  ['uint4', 'uint4', 4, 'Uint8Array'],
  ['int4', 'int4', 4, 'Uint8Array'],
  ['float4e2m1', 'float4e2m1', 4, 'Uint8Array', false],
  ['float8e8m0', 'float8e8m0', 8, 'Uint8Array', false],
  ['uint2', 'uint2', 2, 'Uint8Array', false],
  ['int2', 'int2', 2, 'Uint8Array', false],
  ['float6e2m3', 'float6e2m3', 6, 'Uint8Array', false],
  ['float6e3m2', 'float6e3m2', 6, 'Uint8Array', false],
];

/** All of them, in the order of their codes. */
export const elementTypes: readonly ElementType[] = rows.map(
  ([name, onnxName, bits, array, common = true, perElement = 1], i) => ({
    code: i + 1,
    name,
    onnxName,
    bits,
    array,
    perElement,
    common,
  }),
);
const byName: ReadonlyMap<string, ElementType> = new Map(elementTypes.map((type) => [type.name, type]));

/** The type with an ONNX code; undefined for codes that are not known. */
export function elementTypeOfCode(code: number): ElementType | undefined {
  return elementTypes[code - 1];
}

/** The type with a JavaScript name such as 'float32'; undefined for anything else. */
export function elementTypeOfName(name: unknown): ElementType | undefined {
  return typeof name === 'string' ? byName.get(name) : undefined;
}

/** Entries that the data array of `size` elements has. */
export function arrayLength(type: ElementType, size: number): number {
  return type.bits > 0 && type.bits < 8 ? Math.ceil((size * type.bits) / 8) : size * type.perElement;
}
