import { fromNative, InferenceError, isNativeError, type NativeError } from '../errors.js';
import { emptyHint, feedHint, runMemoryHint, sentence } from '../hints.js';
import { loadNative } from '../load-native.js';
import type { Completion } from '../native.js';
import type { ParsedRunOptions } from '../options/run-options.js';

/** Milliseconds beyond which Node.js's timers end at once. */
export const longestTimer = 2 ** 31 - 1;

/**
 * The result of a job of the addon, whose callback goes to `connect`. An abort of `signal` cancels the job; the promise
 * settles when the job has ended, so its memory is free.
 */
export function completion<T>(
  job: number,
  signal: AbortSignal | undefined,
  connect: (callback: Completion<T>) => void,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const settled = signal && cancelOnAbort(signal, job);
    connect((error, result) => {
      if (error !== undefined) reject(error);
      else resolve(result as T);
      settled?.();
    });
  });
}

/** Cancels a job when `signal` aborts, or has; returns what to call when the job has ended. */
function cancelOnAbort(signal: AbortSignal, job: number): () => void {
  if (!signal.aborted) return onAbort(signal, () => loadNative().cancel(job));
  loadNative().cancel(job); // by a getter of the feeds
  return () => undefined;
}

/** What each signal calls. It has one listener for all, because Node.js warns of a leak from the eleventh on. */
const waiting = new WeakMap<AbortSignal, { calls: Set<() => void>; abort: () => void }>();

/** Calls `call` when `signal` aborts; returns what takes that back. */
export function onAbort(signal: AbortSignal, call: () => void): () => void {
  const known = waiting.get(signal);
  const calls = known?.calls ?? new Set<() => void>();
  const abort =
    known?.abort ??
    ((): void => {
      for (const each of [...calls]) each();
    });
  if (known === undefined) {
    signal.addEventListener('abort', abort, { once: true });
    waiting.set(signal, { calls, abort });
  }
  calls.add(call);
  return () => {
    calls.delete(call);
    if (calls.size > 0) return;
    waiting.delete(signal);
    signal.removeEventListener('abort', abort);
  };
}

/** The error that the user sees of a run's: where it was ended, by its signal, or else by its timeout. */
export function runError(given: unknown, { native, signal }: ParsedRunOptions): unknown {
  const error = isNativeError(given) ? { ...given, message: withHint(given) } : given;
  if (signal?.aborted) return fromNative(error, { cause: signal.reason });
  const timeout = native?.timeout ?? 0;
  if (timeout === 0 || !isNativeError(error)) return fromNative(error);
  const message = error.message.replace('its timeout', `its timeout of ${timeout} ms`);
  return fromNative({ ...error, message }, { timedOut: true });
}

/** What the addon says of a run, and what to do about it. */
function withHint(error: NativeError): string {
  const { code, message } = error;
  if (code === 'SHAPE_MISMATCH' || code === 'INVALID_ARGUMENT') return message + feedHint(error) + emptyHint(message);
  return code === 'OUT_OF_MEMORY' ? sentence(message) + runMemoryHint(message) : message;
}

/** Throws ABORTED with the signal's reason as cause. */
export function throwIfAborted(options: Pick<ParsedRunOptions, 'signal'> & { terminate?: boolean }): void {
  if (options.signal?.aborted) {
    throw new InferenceError('ABORTED', 'The operation was aborted before it began.', undefined, {
      cause: options.signal.reason,
    });
  }
  if (options.terminate) {
    throw new InferenceError('ABORTED', "The run was ended by 'terminate' of its run options.");
  }
}
