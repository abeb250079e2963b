import type { Tensor as CommonTensor } from 'onnxruntime-common';

import { InferenceError, rangeError, typeError } from '../errors.js';
import { nameHint } from '../hints.js';
import type { NativeValueInfo } from '../native.js';
import { arrayLength, elementTypeOfCode } from '../tensor/element-types.js';
import { ExtendedTensor, sizeOf, Tensor } from '../tensor/tensor.js';
import { describe, zeros, type TensorStorage } from '../tensor/tensor-data.js';

/** Dims by the input's name, or a size by the name of a free dim. */
export type WarmUpShapes = Readonly<Record<string, readonly number[] | number>>;

/**
 * Zeros for every required input, of the dims that `shapes` gives. Throws TypeError and RangeError for shapes that are
 * none, and INVALID_ARGUMENT for an input whose dims nothing tells.
 */
export function warmFeeds(inputs: readonly NativeValueInfo[], shapes: WarmUpShapes): Record<string, CommonTensor> {
  if (typeof shapes !== 'object' || (shapes as unknown) === null) {
    throw typeError(`'shapes' must be an object of dims by input name, got ${describe(shapes)}.`);
  }
  if (Array.isArray(shapes)) {
    throw typeError("'shapes' is an array: give each set of shapes as an argument, session.warmUp({ ... }, { ... }).");
  }
  const required = inputs.filter(({ overridable }) => !overridable);
  const symbols = required.flatMap(({ shape }) => shape?.filter((dim) => typeof dim === 'string') ?? []);
  const known = [...new Set([...required.map(({ name }) => name), ...symbols.filter((symbol) => symbol !== '')])];
  for (const name of Object.keys(shapes)) {
    if (!known.includes(name)) {
      throw rangeError(`There is no input and no free dim '${name}'.${nameHint(name, known, 'inputs and dims')}`);
    }
  }
  const sizes = { ...sizesOf(required, shapes), ...shapes };
  return Object.fromEntries(required.map((info) => [info.name, feedOf(info, dimsOf(info, sizes))]));
}

/** The sizes of free dims, as the dims of inputs tell them that have these. */
function sizesOf(inputs: readonly NativeValueInfo[], shapes: WarmUpShapes): Record<string, number> {
  const sizes: Record<string, number> = {};
  for (const { name, shape } of inputs) {
    const given = Object.hasOwn(shapes, name) ? shapes[name] : undefined;
    if (typeof given !== 'object') continue;
    shape?.forEach((dim, i) => {
      if (typeof dim === 'string' && dim !== '' && given[i] !== undefined) sizes[dim] ??= given[i];
    });
  }
  return sizes;
}

function dimsOf({ name, shape }: NativeValueInfo, shapes: WarmUpShapes): readonly number[] {
  const given = Object.hasOwn(shapes, name) ? shapes[name] : undefined;
  if (given !== undefined && typeof given !== 'number') return given;
  if (shape === null) throw missing(name, 'rank');
  return shape.map((dim) => {
    if (typeof dim === 'number') return dim;
    const size = Object.hasOwn(shapes, dim) ? shapes[dim] : undefined;
    if (typeof size !== 'number') throw missing(name, dim === '' ? 'free dims' : `dim '${dim}'`);
    return size;
  });
}

function missing(input: string, what: string): InferenceError {
  const message = `input '${input}': 'shapes' does not tell its ${what}: give { '${input}': [dims] }.`;
  return new InferenceError('INVALID_ARGUMENT', message, { input });
}

function feedOf({ name, kind, optional, elementType }: NativeValueInfo, dims: readonly number[]): CommonTensor {
  const type = elementTypeOfCode(elementType);
  if (kind !== 'tensor' || optional || type === undefined) {
    throw new InferenceError('INVALID_ARGUMENT', `input '${name}' is no tensor: warm up by a run of your own.`, {
      input: name,
    });
  }
  const length = arrayLength(type, sizeOf(dims));
  let data: TensorStorage;
  try {
    data = zeros(type, length);
  } catch {
    const message = `input '${name}': ${length} elements of ${type.name} do not fit into memory.`;
    throw new InferenceError('OUT_OF_MEMORY', message, { input: name });
  }
  if (type.array === 'Array') return new Tensor('string', data as string[], dims);
  return type.common ? new Tensor(type.name as 'float32', data as never, dims) : new ExtendedTensor(type, data, dims);
}
