import type { Tensor as CommonTensor } from 'onnxruntime-common';

import { InferenceError } from '../errors.js';
import { arrayLength, elementTypeOfName, type ElementType } from '../tensor/element-types.js';
import { Tensor } from '../tensor/tensor.js';
import { bitsOf, type TypedArray } from '../tensor/tensor-data.js';
import type { BatchShape, Given, Piece } from './batch-shape.js';
import type { ParsedBatcherOptions, PaddingRule } from './batcher-options.js';
import { copyBlock } from './blocks.js';
import { filled } from './fill.js';

type Feeds = Record<string, CommonTensor>;

/** The feeds of one run of all calls, joined along the axis, sequences padded to the longest. */
export function join(calls: readonly Given[], { axis, padding }: ParsedBatcherOptions): Feeds {
  const [first] = calls as [Given];
  const feeds = [...first.pieces].map(([name, { type }]) => {
    const pieces = calls.map((call) => call.pieces.get(name) as Piece);
    const [only] = pieces as [Piece];
    return [name, tensorOf(pieces.length === 1 ? only : joined(pieces, type, axis, padding.get(name)))] as const;
  });
  return Object.fromEntries([...first.shared, ...feeds]) as Feeds;
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
  const answers = calls.map((): [name: string, value: CommonTensor][] => []);
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
      answers[i]?.push([name, tensorOf({ type, dims, data })]);
      row += call.rows;
    });
  }
  return answers.map((values) => Object.fromEntries(values)); // by which '__proto__' is a name like any other
}

const tensorOf = ({ type, dims, data }: Piece): CommonTensor => new Tensor(type.name as 'float32', data as never, dims);
const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);
