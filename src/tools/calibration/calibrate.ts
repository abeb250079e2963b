import { InferenceError, InferenceSession, type Tensor } from '../../index.js';
import { typeError } from '../../errors.js';
import { describe } from '../../tensor/tensor-data.js';
import type { Observer, Range } from './observer.js';

/** What a model is fed in one run. */
export type CalibrationFeeds = Readonly<Record<string, Tensor>>;

/** What a model is fed in each run of a calibration. */
export type CalibrationData = Iterable<CalibrationFeeds> | AsyncIterable<CalibrationFeeds>;

/** Ranges by the names of tensors. */
export type Ranges = Map<string, Range>;

export interface Calibration {
  /** Makes what learns the range of one tensor. */
  readonly observer: () => Observer;
  /** How often an observer sees the runs of a stride. */
  readonly passes: 1 | 2;
  /** How many runs there are in a stride; Infinity: all. */
  readonly stride: number;
  readonly signal: AbortSignal | undefined;
  /** Hears how many runs have been fed. */
  readonly onRun: (done: number) => void;
}

export function checkCalibrationData(data: unknown): asserts data is CalibrationData {
  const known = typeof data === 'object' && data !== null && (Symbol.asyncIterator in data || Symbol.iterator in data);
  if (!known) throw typeError(`The calibration data must be feeds to iterate over, got ${describe(data)}.`);
}

/** The least and the largest element; undefined where one is no finite number. */
function extremes(data: Float32Array): Range | undefined {
  let lowest = Infinity;
  let highest = -Infinity;
  let odd = 0;
  for (let i = 0; i < data.length; i++) {
    const value = data[i] as number;
    if (value < lowest) lowest = value;
    if (value > highest) highest = value;
    odd += value - value;
  }
  return odd === 0 ? [lowest, highest] : undefined;
}

/** An error of one run's feeds that says which they are. */
function failure(index: number, error: unknown): unknown {
  const message = `calibration data ${index}: ${(error as Error).message}`;
  if (error instanceof TypeError) return typeError(message);
  if (!(error instanceof InferenceError) || error.code === 'ABORTED') return error;
  return new InferenceError(error.code, message, error, { cause: error });
}

function notFinite(what: string): InferenceError {
  return new InferenceError('INVALID_ARGUMENT', `${what} has an element that is no finite number`);
}

function checkFeeds(feeds: unknown): asserts feeds is CalibrationFeeds {
  if (typeof feeds !== 'object' || feeds === null) throw typeError(`feeds must be an object, got ${describe(feeds)}.`);
  for (const [name, value] of Object.entries(feeds) as [string, Tensor | null][]) {
    const floats = value?.type === 'float32' && value.data instanceof Float32Array;
    if (floats && value.size > 0 && !extremes(value.data as Float32Array)) throw notFinite(`'${name}'`);
  }
}

class Run {
  readonly #observers = new Map<string, Observer>();

  constructor(
    private readonly session: InferenceSession,
    private readonly how: Calibration,
  ) {
    for (const info of session.outputMetadata) {
      if (info.isTensor && info.type === 'float32') this.#observers.set(info.name, how.observer());
    }
  }

  /** Runs the model and shows the observers what it makes. */
  async look(feeds: CalibrationFeeds, pass: number): Promise<void> {
    const { signal } = this.how;
    const results = await this.session.run(feeds, [...this.#observers.keys()], signal && { signal });
    for (const [name, observer] of this.#observers) {
      const data = (results[name] as Tensor).data as Float32Array;
      if (data.length === 0) continue;
      const range = extremes(data);
      if (!range) throw notFinite(`the tensor '${name}' that the model makes of it`);
      observer.look(data, range, pass);
    }
  }

  end(pass: number): void {
    for (const observer of this.#observers.values()) observer.end(pass);
  }

  ranges(): Ranges {
    return new Map([...this.#observers].map(([name, observer]) => [name, observer.range()]));
  }
}

/** Finds the ranges of a session's outputs. Feeds are held until their stride is over where they are needed twice. */
export async function calibrate(session: InferenceSession, data: CalibrationData, how: Calibration): Promise<Ranges> {
  const run = new Run(session, how);
  const held: CalibrationFeeds[] = [];
  let count = 0;
  let inStride = 0;
  const endStride = async (): Promise<void> => {
    run.end(0);
    for (const feeds of held.splice(0)) await run.look(feeds, 1);
    if (how.passes === 2) run.end(1);
    inStride = 0;
  };
  for await (const feeds of data) {
    try {
      checkFeeds(feeds);
      await run.look(feeds, 0);
    } catch (error) {
      throw failure(count, error);
    }
    if (how.passes === 2) held.push(feeds);
    how.onRun(++count);
    if (++inStride === how.stride) await endStride();
  }
  if (count === 0) throw new InferenceError('INVALID_ARGUMENT', 'the calibration data is empty');
  if (inStride > 0) await endStride();
  return run.ranges();
}
