import { arrayLength, type ElementType } from '../tensor/element-types.js';
import { sizeOf } from '../tensor/tensor.js';
import { wrapBuffer, type TensorStorage, type TypedArray } from '../tensor/tensor-data.js';
import type { PaddingRule } from './batcher-options.js';

/** Whether an element of the type can be that. */
export function canFill(type: ElementType, value: string | number | bigint | boolean): boolean {
  if (type.array === 'Array' || typeof value === 'string') return type.array === 'Array' && typeof value === 'string';
  if (type.array.startsWith('Float')) return true;
  try {
    return Number(filled(type, [1], value)[0]) === Number(value);
  } catch {
    return false; // no BigInt
  }
}

/** So many elements of a value, by default 0 or ''. */
export function filled(type: ElementType, dims: readonly number[], value: PaddingRule['value']): TensorStorage {
  const length = arrayLength(type, sizeOf(dims));
  if (type.array === 'Array') return new Array<string>(length).fill(String(value ?? ''));
  const array = wrapBuffer(type.array, new ArrayBuffer(arrayLength(type, sizeOf(dims)) * bytesPer(type)));
  if (value !== undefined && value !== 0) {
    const wide = type.array.startsWith('Big');
    (array as TypedArray & { fill(value: unknown): void }).fill(wide ? BigInt(value) : Number(value));
  }
  return array;
}

const bytesPer = (type: ElementType): number => type.bits / 8 / arrayLength(type, 1);
