import { rangeError, typeError } from '../errors.js';
import type { OptionReader } from '../options/option-reader.js';
import { StrictReader } from '../options/strict-reader.js';
import { longestTimer } from '../run/jobs.js';
import { describe } from '../tensor/tensor-data.js';

/** How sequences of different lengths become one batch. */
export interface PaddingRule {
  /** The axis along which lengths differ. */
  readonly axis: number;
  /** What the rest is filled with: 0, false or '' by default; of float16 and bfloat16 the bits. */
  readonly value?: number | bigint | boolean | string;
}

/** Options of `createBatcher`. */
export interface BatcherOptions {
  /** Rows along `axis` that one run takes at most. A call of more rows runs alone. Default: 32. */
  maxBatch?: number;
  /** Milliseconds that a call waits for others at most, while the session is free. Default: 2. */
  maxDelayMs?: number;
  /** The axis along which calls are joined, and answers cut. Default: 0. */
  axis?: number;
  /** Calls that may wait; one more is refused with QUEUE_FULL. Default: 1000. */
  maxQueue?: number;
  /** Runs at the same time; while they are under way, calls wait and batches grow. Default: 1. */
  maxConcurrent?: number;
  /** By input: how it is padded to the longest of the batch. An input without a rule joins only what has its dims. */
  padding?: Readonly<Record<string, PaddingRule>>;
  /**
   * By output: along which axis it is cut to the length that an input had. By default those axes that bear the name of
   * a padded axis in the model.
   */
  unpadding?: Readonly<Record<string, { readonly axis: number; readonly input: string }>>;
  /** Inputs that have no rows and are one tensor for all: only calls that give the same object are joined. */
  shared?: readonly string[];
  /** Outputs to compute. Default: all. */
  outputs?: readonly string[];
}

export interface ParsedBatcherOptions {
  maxBatch: number;
  maxDelayMs: number;
  axis: number;
  maxQueue: number;
  maxConcurrent: number;
  padding: ReadonlyMap<string, PaddingRule>;
  unpadding: ReadonlyMap<string, { axis: number; input: string }>;
  shared: readonly string[];
  outputs: readonly string[] | undefined;
}

/** Checks and reads every option once. Throws TypeError and RangeError. */
export function parseBatcherOptions(options: unknown): ParsedBatcherOptions {
  if (typeof options !== 'object' || options === null) throw typeError("'options' must be an object.");
  const reader = new StrictReader(options, 'batcher options', 'BatcherOptions');
  const most = 2 ** 32 - 1;
  const parsed = {
    maxBatch: reader.integer('maxBatch', 32, most, 1),
    maxDelayMs: reader.integer('maxDelayMs', 2, longestTimer),
    axis: reader.integer('axis', 0, 63),
    maxQueue: reader.integer('maxQueue', 1000, most, 1),
    maxConcurrent: reader.integer('maxConcurrent', 1, most, 1),
    padding: rules<PaddingRule>(reader, 'padding'),
    unpadding: cuts(reader),
    shared: names(reader, 'shared') ?? [],
    outputs: names(reader, 'outputs'),
  };
  if (parsed.outputs?.length === 0) throw rangeError("Invalid batcher options: 'outputs' names no output.");
  reader.close();
  return parsed;
}

function rules<T extends { axis: number }>(reader: OptionReader, key: string): Map<string, T> {
  const value = reader.get(key);
  if (value === undefined) return new Map();
  if (typeof value !== 'object' || value === null) reader.wrong(key, 'an object', value);
  return new Map(
    Object.entries(value).map(([name, rule]: [string, unknown]) => {
      const axis: unknown = (rule as { axis?: unknown } | null | undefined)?.axis;
      if (!Number.isSafeInteger(axis) || (axis as number) < 0) {
        reader.wrong(`${key}.${name}.axis`, 'a whole number', axis);
      }
      return [name, { ...(rule as T) }];
    }),
  );
}

function cuts(reader: OptionReader): Map<string, { axis: number; input: string }> {
  const all = rules<{ axis: number; input: string }>(reader, 'unpadding');
  for (const [name, { input }] of all) {
    if (typeof input !== 'string') reader.wrong(`unpadding.${name}.input`, 'the name of an input', input);
  }
  return all;
}

function names(reader: OptionReader, key: string): readonly string[] | undefined {
  const value = reader.get(key);
  if (value === undefined) return undefined;
  const all: readonly unknown[] | undefined = Array.isArray(value) ? Array.from(value as unknown[]) : undefined; // holes, too
  if (!all?.every((name) => typeof name === 'string')) {
    throw typeError(`Invalid batcher options: '${key}' must be an array of names, got ${describe(value)}.`);
  }
  return all as readonly string[];
}
