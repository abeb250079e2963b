import { arrayLength, type ElementType } from '../tensor/element-types.js';
import { sizeOf } from '../tensor/tensor.js';
import { zeros, type TensorStorage } from '../tensor/tensor-data.js';
import type { PaddingRule } from './batcher-options.js';

/** Whether an element of the type can be that. */
export function canFill(type: ElementType, value: string | number | bigint | boolean): boolean {
  if (type.array === 'Array' || typeof value === 'string') return type.array === 'Array' && typeof value === 'string';
  if (type.array.startsWith('Float')) return true;
  if (type.bits < 8) return false; // packed
  try {
    return Number(filled(type, [1], value)[0]) === Number(value);
  } catch {
    return false; // no BigInt
  }
}

/** So many elements of a value, by default 0 or ''. */
export function filled(type: ElementType, dims: readonly number[], value: PaddingRule['value']): TensorStorage {
  const data = zeros(type, arrayLength(type, sizeOf(dims)));
  if (value === undefined || value === 0) return data;
  const wide = type.array.startsWith('Big');
  const entry = type.array === 'Array' ? String(value) : wide ? BigInt(value) : Number(value);
  return (data as { fill(value: unknown): TensorStorage }).fill(entry);
}
