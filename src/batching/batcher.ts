import type { InferenceSession as Common } from 'onnxruntime-common';

import { now } from '../clock.js';
import { InferenceError, typeError } from '../errors.js';
import { promiseHint } from '../hints.js';
import type { InferenceSession, TypedInferenceSession } from '../inference-session.js';
import type { Checked, FeedsOf, ModelTypes, OutputsOf } from '../model-types.js';
import { parseRunOptions, type ParsedRunOptions } from '../options/run-options.js';
import type { ValueMap } from '../run/outputs.js';
import { NativeSessionHandler } from '../session-handler.js';
import { describe } from '../tensor/tensor-data.js';
import { longestTimer, onAbort, throwIfAborted } from '../run/jobs.js';
import { checkFeeds, checkOptions } from '../run/run-arguments.js';
import { parseBatcherOptions, type BatcherOptions, type ParsedBatcherOptions } from './batcher-options.js';
import { BatchShape, type Given } from './batch-shape.js';
import { join, split } from './join.js';

/** A call that waits or is being answered. */
interface Call {
  given: Given;
  /** By `now`. */
  arrived: number;
  ended: boolean;
  /** Settles the promise of the call, once. */
  end(error: unknown, results?: Common.ReturnType): void;
  /** Calls this when the call has ended. */
  onEnd: (() => void) | undefined;
}

/** Calls that can be joined, oldest first. */
interface Group {
  calls: Call[];
  rows: number;
}

/** Options of a call. */
export interface BatcherRunOptions {
  /** Takes the call out of the queue, or lets go of the run that it is part of: it rejects with ABORTED. */
  signal?: AbortSignal;
  /** Milliseconds from the call on, after which it rejects with ABORTED by the name of TimeoutError. 0: no limit. */
  timeout?: number;
}

/**
 * Joins calls that are made at about the same time into one run of a session, and gives each its rows of the answers.
 * Inputs are read at the call. A call whose values a run fails on is the only one that hears of it: the others run
 * again without it.
 */
export class Batcher {
  readonly #session: InferenceSession;
  readonly #handler: NativeSessionHandler;
  readonly #options: ParsedBatcherOptions;
  readonly #shape: BatchShape;
  readonly #groups = new Map<string, Group>();
  readonly #wakers: (() => void)[] = [];
  #waiting = 0;
  /** Calls that `ready` let through and that are to come before the event loop goes on. */
  #expected = 0;
  #running = 0;
  #closed = false;
  #timer: NodeJS.Timeout | undefined;
  #stats = { calls: 0, runs: 0, rows: 0 };

  /** @internal */
  constructor(session: InferenceSession, options: BatcherOptions) {
    if (typeof session !== 'object' || (session as unknown) === null || !('handler' in session)) {
      throw typeError(`A batcher is made for a session, got ${describe(session)}.${promiseHint(session)}`);
    }
    this.#session = session;
    this.#options = parseBatcherOptions(options);
    const { handler } = session;
    if (!(handler instanceof NativeSessionHandler)) {
      throw new InferenceError(
        'INVALID_ARGUMENT',
        'A session of another backend, or of another copy of this package, cannot be batched.',
      );
    }
    this.#handler = handler;
    this.#shape = new BatchShape(handler.native, this.#options);
  }

  /** Calls that wait for a run. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Calls so far, the runs that answered them, and the rows of those. */
  get stats(): Readonly<{ calls: number; runs: number; rows: number }> {
    return { ...this.#stats };
  }

  /**
   * The outputs for these feeds. Rejects with what `session.run` rejects with, and with QUEUE_FULL where `maxQueue`
   * calls wait, ABORTED by `signal` and `timeout`, and DISPOSED after `close`.
   */
  async run(feeds: ValueMap, options?: BatcherRunOptions): Promise<Common.ReturnType> {
    checkFeeds(feeds, this.#session.inputNames);
    const parsed = parseRunOptions(checkOptions(options));
    this.#refuse(parsed);
    const given = this.#shape.read(feeds);
    this.#handler.lookForStrays(feeds);
    this.#refuse(parsed); // a getter of the feeds may have aborted, closed or called
    if (this.#expected > 0) this.#expected--;
    return new Promise((resolve, reject) => {
      const { signal, native } = parsed;
      const timeout = native?.timeout ?? 0;
      const abort = (): void => {
        call.end(new InferenceError('ABORTED', 'The call was aborted.', undefined, { cause: signal?.reason }));
      };
      const late = (): void => {
        const message = `The call took longer than its timeout of ${timeout} ms.`;
        call.end(new InferenceError('ABORTED', message, undefined, { timedOut: true }));
      };
      const timer = timeout > 0 && timeout <= longestTimer ? setTimeout(late, timeout) : undefined;
      const call: Call = {
        given,
        arrived: now(),
        ended: false,
        onEnd: undefined,
        end: (error, results) => {
          if (call.ended) return;
          call.ended = true;
          clearTimeout(timer);
          forget?.();
          if (results !== undefined) resolve(results);
          else reject(error as Error);
          call.onEnd?.();
        },
      };
      const forget = signal && onAbort(signal, abort);
      this.#enqueue(call);
    });
  }

  /**
   * Resolves when there is room for a call that is made at once, or at `close`: who awaits it right before each call is
   * slowed down, not refused.
   */
  async ready(): Promise<void> {
    while (!this.#closed && this.#waiting + this.#expected >= this.#options.maxQueue)
      await new Promise<void>((resolve) => this.#wakers.push(resolve));
    if (this.#expected++ > 0) return;
    setImmediate(() => {
      this.#expected = 0; // who has not called yet takes the chance with all others
      this.#wake();
    });
  }

  /** Refuses later calls; resolves when those that were made are answered. The session stays as it is. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#schedule();
    this.#wake();
    while (this.#waiting + this.#running > 0) await new Promise<void>((resolve) => this.#wakers.push(resolve));
  }

  /** `close`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Throws where a call cannot be taken now. */
  #refuse(options: ParsedRunOptions): void {
    if (this.#closed) throw new InferenceError('DISPOSED', 'The batcher is closed.');
    throwIfAborted(options);
    if (this.#waiting >= this.#options.maxQueue) {
      throw new InferenceError('QUEUE_FULL', `${this.#waiting} calls wait already, as many as 'maxQueue' lets.`);
    }
  }

  #enqueue(call: Call): void {
    const { key, rows } = call.given;
    let group = this.#groups.get(key);
    if (group === undefined) this.#groups.set(key, (group = { calls: [], rows: 0 }));
    group.calls.push(call);
    group.rows += rows;
    this.#waiting++;
    this.#stats.calls++;
    call.onEnd = () => this.#leave(call);
    this.#schedule();
  }

  /** Takes a call that has ended while it waited out of the queue. */
  #leave(call: Call): void {
    const group = this.#groups.get(call.given.key);
    const place = group?.calls.indexOf(call) ?? -1;
    if (group === undefined || place < 0) return;
    group.calls.splice(place, 1);
    this.#taken(call.given.key, group, [call]);
    this.#schedule();
    this.#wake();
  }

  #taken(key: string, group: Group, calls: readonly Call[]): void {
    for (const { given } of calls) group.rows -= given.rows;
    this.#waiting -= calls.length;
    if (group.calls.length === 0) this.#groups.delete(key);
  }

  #wake(): void {
    for (const waker of this.#wakers.splice(0)) waker();
  }

  /** Starts the runs that are due, oldest first, and a timer for the next. */
  #schedule(): void {
    const { maxBatch, maxDelayMs, maxConcurrent } = this.#options;
    clearTimeout(this.#timer);
    while (this.#running < maxConcurrent && this.#groups.size > 0) {
      const time = now();
      const dueAt = ({ calls: [oldest], rows }: Group): number =>
        this.#closed || rows >= maxBatch ? 0 : (oldest as Call).arrived + maxDelayMs;
      const due = [...this.#groups].filter(([, group]) => dueAt(group) <= time);
      const arrival = ([, { calls }]: [string, Group]): number => (calls[0] as Call).arrived;
      const next = due.sort((a, b) => arrival(a) - arrival(b))[0];
      if (next === undefined) {
        const first = Math.min(...[...this.#groups.values()].map(dueAt));
        this.#timer = setTimeout(() => this.#schedule(), Math.max(1, Math.ceil(first - time)));
        return;
      }
      this.#start(...next);
    }
  }

  /** Runs the oldest calls of a group. */
  #start(key: string, group: Group): void {
    let rows = 0;
    let count = 0;
    for (const { given } of group.calls) {
      if (count > 0 && rows + given.rows > this.#options.maxBatch) break;
      rows += given.rows;
      count++;
    }
    const calls = group.calls.splice(0, count);
    this.#taken(key, group, calls);
    this.#running++;
    void this.#answer(calls).finally(() => {
      this.#running--;
      this.#schedule();
      this.#wake();
    });
    this.#wake();
  }

  /** Answers all calls, whatever happens. Where a run of several fails, each half of them gets one of its own. */
  async #answer(all: readonly Call[]): Promise<void> {
    const calls = all.filter(({ ended }) => !ended);
    if (calls.length === 0) return;
    const letGo = new AbortController();
    for (const call of calls) {
      call.onEnd = () => {
        if (calls.every(({ ended }) => ended)) letGo.abort();
      };
    }
    try {
      const given = calls.map((call) => call.given);
      const feeds = join(given, this.#options);
      this.#stats.runs++;
      this.#stats.rows += given.reduce((rows, call) => rows + call.rows, 0);
      const { outputs } = this.#options;
      const options = { signal: letGo.signal };
      const results = outputs
        ? await this.#session.run(feeds, outputs, options)
        : await this.#session.run(feeds, options);
      const answers = split(results, given, this.#shape, this.#options);
      calls.forEach((call, i) => call.end(undefined, answers[i]));
    } catch (error) {
      const hopeless = error instanceof InferenceError && error.code === 'DISPOSED';
      if (calls.length === 1 || hopeless) for (const call of calls) call.end(error);
      else {
        const middle = Math.ceil(calls.length / 2);
        await this.#answer(calls.slice(0, middle));
        await this.#answer(calls.slice(middle));
      }
    }
  }
}

/** A batcher of a session with a model's types: it checks feeds and results as the session does. */
export interface TypedBatcher<M extends ModelTypes, N extends keyof M['outputs'] = keyof M['outputs']> extends Omit<
  Batcher,
  'run'
> {
  /** As `Batcher.run`, and rejects with the same errors: what the compiler does not know is checked when it runs. */
  run<F extends FeedsOf<M>>(feeds: F & Checked<M, F>, options?: BatcherRunOptions): Promise<Pick<OutputsOf<M>, N>>;
}

/**
 * Joins concurrent calls of a model whose inputs and outputs have a free axis for them. Throws TypeError and RangeError
 * for wrong options, and INVALID_ARGUMENT for a model that cannot be batched.
 */
export function createBatcher(session: InferenceSession, options?: BatcherOptions): Batcher;
export function createBatcher<M extends ModelTypes, const N extends keyof M['outputs'] = keyof M['outputs']>(
  session: TypedInferenceSession<M>,
  options?: BatcherOptions & { outputs?: readonly (N & string)[] },
): TypedBatcher<M, N>;
export function createBatcher(session: unknown, options: BatcherOptions = {}): Batcher {
  return new Batcher(session as InferenceSession, options);
}
