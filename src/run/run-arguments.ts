import { Tensor as CommonTensor, type Tensor } from 'onnxruntime-common';

import { rangeError, typeError } from '../errors.js';
import { listed, nameHint, shownPath } from '../hints.js';
import { warnOnce } from '../options/option-names.js';
import type { RunOptions } from '../options/run-options.js';
import { describe } from '../tensor/tensor-data.js';

/** What `run` was given, sorted out. */
export interface RunArguments {
  fetches: Readonly<Record<string, Tensor | null>> | undefined;
  options: RunOptions | undefined;
}

interface Names {
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
}

/**
 * Reads the arguments of `run`: feeds, then fetches or options, then options. `session`: whose inputs and outputs they
 * name. Throws TypeError and RangeError as onnxruntime-node does.
 */
export function parseRunArguments(session: Names, feeds: unknown, arg1: unknown, arg2: unknown): RunArguments {
  const { inputNames, outputNames } = session;
  checkFeeds(feeds, inputNames);
  if (arg1 === undefined) return { fetches: undefined, options: checkOptions(arg2) };
  if (typeof arg1 !== 'object') {
    const hint = typeof arg1 === 'string' ? ` Give the names of outputs in an array: ['${shownPath(arg1)}'].` : '';
    throw typeError(`Unexpected argument[1]: must be 'fetches' or 'options'.${hint}`);
  }
  if (arg1 === null) throw typeError('Unexpected argument[1]: cannot be null.');
  if (isTensor(arg1)) throw typeError("'fetches' cannot be a Tensor");
  if (Array.isArray(arg1)) {
    return { fetches: fetchesOfNames(arg1 as unknown[], outputNames), options: checkOptions(arg2) };
  }
  // It is fetches if any output is a key of its own with a value that fetches may have.
  const given = arg1 as Record<string, unknown>;
  const fetches: [name: string, value: Tensor | null][] = [];
  for (const name of outputNames) {
    if (!Object.hasOwn(given, name)) continue;
    const value = given[name];
    if (value === null || isTensor(value)) fetches.push([name, value]);
  }
  warnStrays(given, outputNames);
  if (fetches.length === 0) return { fetches: undefined, options: given };
  return { fetches: Object.fromEntries(fetches), options: checkOptions(arg2) };
}

/** Throws TypeError for what is no object of feeds by input name. */
export function checkFeeds(feeds: unknown, inputNames: readonly string[]): void {
  if (typeof feeds === 'object' && feeds !== null && !isTensor(feeds) && !Array.isArray(feeds)) return;
  let hint = '';
  if (isTensor(feeds)) hint = ` It is a Tensor: give { '${inputNames[0]}': tensor }.`;
  else if (Array.isArray(feeds)) hint = ` The model's inputs are ${listed(inputNames)}.`;
  throw typeError(
    `'feeds' must be an object that use input names as keys and OnnxValue as corresponding values, got ${describe(feeds)}.${hint}`,
  );
}

function fetchesOfNames(names: readonly unknown[], outputNames: readonly string[]): Record<string, null> {
  if (names.length === 0) throw typeError("'fetches' cannot be an empty array.");
  const fetches: [name: string, value: null][] = [];
  for (const name of names) {
    if (typeof name !== 'string') throw typeError("'fetches' must be a string array or an object.");
    if (!outputNames.includes(name)) {
      const hint = nameHint(name, outputNames, "model's outputs");
      throw rangeError(`'fetches' contains invalid output name: ${name}.${hint}`, { output: name });
    }
    fetches.push([name, null]);
  }
  return Object.fromEntries(fetches);
}

/** `options` where they are an object or undefined. Throws TypeError for anything else. */
export function checkOptions(options: unknown): RunOptions | undefined {
  if (options === undefined) return undefined;
  if (typeof options !== 'object' || options === null) throw typeError("'options' must be an object.");
  if (Array.isArray(options)) throw typeError("'options' must be an object, got Array.");
  return options;
}

/**
 * Warns once about tensors among fetches or options under names that no output has: they would be written into nowhere.
 * onnxruntime-node says nothing, so it is no error.
 */
function warnStrays(given: Readonly<Record<string, unknown>>, outputs: readonly string[]): void {
  for (const [name, value] of Object.entries(given)) {
    if (outputs.includes(name) || !isTensor(value)) continue;
    warnOnce(
      name,
      `'fetches' has '${name}', which is no output and ignored.${nameHint(name, outputs, "model's outputs")}`,
    );
  }
}

/** A Tensor of any copy of onnxruntime-common. */
function isTensor(value: unknown): value is Tensor {
  if (value instanceof CommonTensor) return true;
  if (typeof value !== 'object' || value === null) return false;
  const { dims, type } = value as { dims?: unknown; type?: unknown };
  return Array.isArray(dims) && typeof type === 'string';
}
