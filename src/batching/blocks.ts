import type { TensorStorage } from '../tensor/tensor-data.js';

/** A place in an array of `dims`: where a block of it begins, by axis. */
export interface Place {
  data: TensorStorage;
  dims: readonly number[];
  start: readonly number[];
}

/** Copies a block of `size` elements by axis from one array into another; an element takes `width` entries. */
export function copyBlock(from: Place, to: Place, size: readonly number[], width: number): void {
  if (size.includes(0)) return;
  const whole = (axis: number): boolean => size[axis] === from.dims[axis] && size[axis] === to.dims[axis];
  let last = size.length - 1; // the axes behind it are whole in both, so a block of it is one piece
  while (last > 0 && whole(last)) last--;
  const [fromStrides, toStrides] = [strides(from.dims, width), strides(to.dims, width)];
  const piece = (size[last] ?? 1) * (fromStrides[last] ?? width);
  const copy = (axis: number, fromOffset: number, toOffset: number): void => {
    const [fromStride, toStride] = [fromStrides[axis] ?? 0, toStrides[axis] ?? 0];
    const source = fromOffset + (from.start[axis] ?? 0) * fromStride;
    const target = toOffset + (to.start[axis] ?? 0) * toStride;
    if (axis >= last) {
      copyPiece(from.data, source, to.data, target, piece);
      return;
    }
    for (let i = 0; i < (size[axis] as number); i++) copy(axis + 1, source + i * fromStride, target + i * toStride);
  };
  copy(0, 0, 0);
}

/** How many entries lie between neighbours, by axis. */
function strides(dims: readonly number[], width: number): number[] {
  const result = new Array<number>(dims.length);
  let stride = width;
  for (let axis = dims.length - 1; axis >= 0; axis--) {
    result[axis] = stride;
    stride *= dims[axis] as number;
  }
  return result;
}

function copyPiece(from: TensorStorage, source: number, to: TensorStorage, target: number, length: number): void {
  if (Array.isArray(from)) {
    for (let i = 0; i < length; i++) (to as string[])[target + i] = from[source + i] as string;
  } else (to as Uint8Array).set((from as Uint8Array).subarray(source, source + length), target);
}
