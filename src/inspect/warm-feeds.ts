import type { Tensor as CommonTensor } from 'onnxruntime-common';

import { InferenceError, rangeError, typeError } from '../errors.js';
import { listed, nameHint } from '../hints.js';
import type { NativeValueInfo } from '../native.js';
import { arrayLength, elementTypeOfCode } from '../tensor/element-types.js';
import { ExtendedTensor, sizeOf, Tensor } from '../tensor/tensor.js';
import { describe, show, zeros, type TensorStorage } from '../tensor/tensor-data.js';

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
  for (const [name, given] of Object.entries(shapes)) {
    if (!known.includes(name)) {
      throw rangeError(`There is no input and no free dim '${name}'.${nameHint(name, known, 'inputs and dims')}`);
    }
    if (typeof given !== 'number' && (typeof given !== 'object' || (given as unknown) === null)) {
      throw typeError(`'${name}' must be an array of dims, or the size of a free dim, got ${describe(given)}.`);
    }
    checkSizes(name, given);
  }
  const told = sizesOf(required, shapes);
  for (const [name, size] of Object.entries(told)) {
    const given = Object.hasOwn(shapes, name) ? shapes[name] : undefined;
    if (typeof given === 'number' && given !== size) {
      throw rangeError(`'shapes' contradicts itself: '${name}' is ${given}, and ${size} by the dims of an input.`);
    }
  }
  const sizes = { ...told, ...shapes };
  checkComplete(required, sizes);
  return Object.fromEntries(required.map((info) => [info.name, feedOf(info, dimsOf(info, sizes))]));
}

/** Throws RangeError for sizes that are no whole numbers from 0 on. */
function checkSizes(name: string, given: readonly number[] | number): void {
  const sizes: readonly unknown[] = typeof given === 'number' ? [given] : Array.from(given);
  sizes.forEach((size, i) => {
    if (Number.isSafeInteger(size) && (size as number) >= 0) return;
    const what = typeof given === 'number' ? `'${name}'` : `'${name}': dims[${i}]`;
    throw rangeError(`${what} must be a whole number from 0 on, got ${show(size)}.`);
  });
}

/** Throws INVALID_ARGUMENT that names all free dims whose sizes nothing tells, if there are any. */
function checkComplete(inputs: readonly NativeValueInfo[], shapes: WarmUpShapes): void {
  const isTold = (name: string): boolean => Object.hasOwn(shapes, name);
  const untold = inputs.filter(({ name }) => !isTold(name) || typeof shapes[name] === 'number');
  const symbols = untold.flatMap(({ shape }) => shape?.filter((dim) => typeof dim === 'string') ?? []);
  const absent = [...new Set(symbols)].filter((dim) => dim !== '' && !isTold(dim));
  const first = untold.find(({ shape }) => shape?.some((dim) => absent.includes(dim as string)));
  if (first === undefined) return;
  const dims = absent.length === 1 ? 'dim' : 'dims';
  const example = absent.map((dim) => `${/^[A-Za-z_$][\w$]*$/.test(dim) ? dim : `'${dim}'`}: 1`).join(', ');
  const message = `input '${first.name}': 'shapes' does not tell its ${dims} ${listed(absent)}: give { ${example} } or { '${first.name}': [dims] }.`;
  throw new InferenceError('INVALID_ARGUMENT', message, { input: first.name });
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
