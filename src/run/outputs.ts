import type { SessionHandler, Tensor } from 'onnxruntime-common';

import { InferenceError } from '../errors.js';
import type { Answer } from '../native.js';
import { bytesOf } from '../tensor/tensor-data.js';
import type { InferenceValue } from '../tensor/tensor-types.js';
import type { RawTarget } from './feeds.js';
import { WireReader, type WireWriter } from './wire.js';

/** Values by name, as feeds and results have them. */
export type ValueMap = Readonly<Record<string, InferenceValue>>;

/** What becomes of a requested output: null and absent the default, a string engine memory on that device. */
export type OutputTarget = InferenceValue | DevicePlacement | null;

/** Engine memory on a device: 'cpu', 'cuda:0', ... */
export class DevicePlacement {
  constructor(readonly device: string) {}
}

/** An output that a run has to give. */
export interface RequestedOutput {
  /** Among the model's outputs. */
  index: number;
  name: string;
  /** The tensor that comes back, and how it is written. */
  target?: ({ tensor: object } & RawTarget) | undefined;
  /** Where the engine keeps it; absent for a JavaScript value. */
  device?: string | undefined;
}

const plain = { writable: true, enumerable: true, configurable: true } as const;

/**
 * The values that the addon answers with, by the names of the requested outputs. Throws SHAPE_MISMATCH where one does
 * not fit into a tensor of the user's that only JavaScript can write.
 */
export function decode(
  run: WireWriter,
  answer: Answer,
  requested: readonly RequestedOutput[],
): SessionHandler.ReturnType {
  const reader = new WireReader('numbers' in answer ? answer : { numbers: run.numbers, items: answer });
  const values: Record<string, unknown> = {};
  for (const { name, target } of requested) {
    const value = reader.value();
    if (target?.copy !== undefined) copyInto(target, value as Tensor, name);
    const result = target === undefined ? value : target.tensor;
    if (name in Object.prototype) Object.defineProperty(values, name, { value: result, ...plain });
    else values[name] = result;
  }
  return values as SessionHandler.ReturnType;
}

/** Writes a result into memory that the engine cannot write. */
function copyInto(target: RawTarget, value: Tensor, name: string): void {
  const { raw, copy } = target;
  if (raw.kind === 'handle') return; // the engine's own
  if (value.type !== raw.type.name || value.dims.join() !== raw.dims.join()) {
    const expected = `${raw.type.name}[${raw.dims.join(',')}]`;
    const actual = `${value.type}[${value.dims.join(',')}]`;
    throw new InferenceError(
      'SHAPE_MISMATCH',
      `output '${name}' is ${actual}, which does not fit into the preallocated ${expected}`,
      { output: name, expected, actual },
    );
  }
  const { data } = value;
  if (Array.isArray(copy)) (data as string[]).forEach((text, i) => (copy[i] = text));
  else if (copy !== undefined) bytesOf(copy).set(bytesOf(data));
}
