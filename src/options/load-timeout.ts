import { InferenceError } from '../errors.js';
import { longestTimer, onAbort } from '../run/jobs.js';
import { OptionReader } from './option-reader.js';
import type { SessionOptions } from './session-options.js';

/**
 * Calls `load` with options whose signal also aborts when `timeout` milliseconds have passed. Rejects with what `load`
 * does, with ABORTED by the name of TimeoutError where time ended it, and with TypeError and RangeError for a wrong
 * timeout.
 */
export async function withTimeout<T>(
  options: SessionOptions,
  load: (options: SessionOptions) => Promise<T>,
): Promise<T> {
  const reader = new OptionReader(options, 'session options');
  const timeout = reader.integer('timeout', 0, longestTimer);
  if (timeout === 0) return load(options);
  const given = reader.signal();
  const ended = new AbortController();
  const late = new InferenceError('ABORTED', `The load took longer than its timeout of ${timeout} ms.`, undefined, {
    timedOut: true,
  });
  const timer = setTimeout(() => ended.abort(late), timeout);
  const forget = given && onAbort(given, () => ended.abort(given.reason));
  if (given?.aborted) ended.abort(given.reason);
  try {
    return await load({ ...options, signal: ended.signal });
  } catch (error) {
    throw ended.signal.reason === late ? late : error;
  } finally {
    clearTimeout(timer);
    forget?.();
  }
}
