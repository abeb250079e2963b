import { env, type Tensor } from 'onnxruntime-common';

/**
 * `tensor` with `data` as an enumerable property of its own where `env.ownTensorData` is true, as tensors of onnxruntime
 * 1.14 and older had it: libraries of that time copy tensors by Object.assign.
 */
export function withOwnData<T extends Tensor>(tensor: T): T {
  if ((env as unknown as Record<string, unknown>)['ownTensorData'] !== true) return tensor;
  const plain = { writable: true, enumerable: true, configurable: true };
  return Object.defineProperty(tensor, 'data', { value: tensor.data, ...plain });
}
