import { statSync } from 'node:fs';

import { isNativeError, throwApart, typeError, type NativeError } from '../errors.js';
import { InferenceError } from '../index.js';
import { loadNative } from '../load-native.js';
import { pathOfUrl } from '../model-source.js';
import type { NativeReport } from '../native.js';
import { completion } from '../run/jobs.js';
import { bytesOf, describe, typedArrayName } from '../tensor/tensor-data.js';
import { readOptions, type Settings, type Table } from './option-table.js';

/** What became of a node. */
export interface NodeOutcome {
  /** Its name, or what it is and makes where it has none. */
  readonly name: string;
  /** Its operator. */
  readonly opType: string;
  /** The operator that does its work now; undefined where the node was left as it was. */
  readonly became?: string;
  /** Why it was left. */
  readonly reason?: string;
}

/** What was done to a model. */
export interface TransformReport {
  /** Each node of the kinds that were looked for. */
  readonly nodes: readonly NodeOutcome[];
  /** Paths of what was written: the model, and its external data if it has any. */
  readonly files: readonly string[];
  /** Bytes of the model that was read, with its external data. */
  readonly bytesBefore: number;
  /** Bytes of the files that were written. */
  readonly bytesAfter: number;
}

/** What all transformations can be given. */
export interface TransformOptions {
  /** Ends the work, which leaves no file. */
  readonly signal?: AbortSignal;
  /** Hears how many of how many nodes are done. */
  readonly onProgress?: (progress: { readonly done: number; readonly total: number }) => void;
}

/** The package's own error of one that the addon, or what loads it, reported. */
function ownError(error: unknown, signal: AbortSignal | undefined): unknown {
  const known = isNativeError(error) || (error instanceof Error && 'code' in error && error.name !== 'TypeError');
  if (!known || error instanceof InferenceError) return error;
  const { code, message } = error as NativeError;
  const cause = signal?.aborted ? signal.reason : error instanceof Error ? error.cause : undefined;
  return new InferenceError(code, message, error as NativeError, { cause });
}

export function sourceOf(model: unknown): string | Uint8Array {
  const source = pathOfUrl(model);
  if (typeof source === 'string') return source;
  if (typedArrayName(source) === 'Uint8Array') return bytesOf(source);
  throw typeError(`The model must be a path, its URL, or bytes in a Uint8Array, got ${describe(model)}.`);
}

export function outputOf(output: unknown): string {
  const path = pathOfUrl(output);
  if (typeof path === 'string' && path !== '' && !path.includes('\0')) return path;
  const got = typeof path === 'string' ? `'${path}'` : describe(output);
  throw typeError(`The output must be the path of a file, or its URL, got ${got}.`);
}

/** Applies the engine's transformation `name`, whose options `table` has. */
export async function transform(
  name: string,
  table: Table,
  model: unknown,
  output: unknown,
  given: unknown = {},
): Promise<TransformReport> {
  if (typeof given !== 'object' || given === null) throw typeError(`${name}: 'options' must be an object.`);
  const { signal, onProgress, ...options } = given as TransformOptions;
  checkListeners(name, { signal, onProgress });
  const settings = readOptions(table, options, `${name} options`);
  return apply(name, settings, sourceOf(model), outputOf(output), { signal, onProgress });
}

/** Throws TypeError for what is no signal, or no listener. */
export function checkListeners(name: string, { signal, onProgress }: TransformOptions): void {
  if (onProgress !== undefined && typeof onProgress !== 'function') {
    throw typeError(`Invalid ${name} options: 'onProgress' must be a function, got ${describe(onProgress)}.`);
  }
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw typeError(`Invalid ${name} options: 'signal' must be an AbortSignal, got ${describe(signal)}.`);
  }
}

/** Applies it with all its settings. */
export async function apply(
  name: string,
  settings: Settings,
  source: string | Uint8Array,
  path: string,
  { signal, onProgress }: TransformOptions,
): Promise<TransformReport> {
  const hear = (text: string): void => {
    const [done, total] = text.split(' ', 2).map(Number) as [number, number];
    try {
      onProgress?.({ done, total });
    } catch (error) {
      throwApart(error);
    }
  };
  try {
    if (signal?.aborted) throw new InferenceError('ABORTED', `${name} was aborted before it began.`, undefined, { cause: signal.reason }); // prettier-ignore
    const report = await new Promise<NativeReport>((resolve, reject) => {
      let settle: Parameters<Parameters<typeof completion<NativeReport>>[2]>[0] | undefined;
      const job = loadNative().transform(source, path, name, settings, onProgress && hear, (error, result) => {
        settle?.(error, result);
      });
      completion<NativeReport>(job, signal, (callback) => {
        settle = callback;
      }).then(resolve, reject);
    });
    return { ...report, bytesAfter: report.files.reduce((sum, file) => sum + statSync(file).size, 0) };
  } catch (error) {
    throw ownError(error, signal);
  }
}
