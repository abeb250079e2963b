import { types } from 'node:util';

import type { InferenceSession as Common, InferenceSessionHandler, SessionHandler, Tensor } from 'onnxruntime-common';

import { elementTypeOfCode, type ElementType } from './element-types.js';
import { EngineTensor } from './engine-tensor.js';
import { callNative, fromNative, InferenceError } from './errors.js';
import { checkValue, readTarget, readValue, writeValue, type RawTarget, type RawValue } from './feeds.js';
import { listed } from './hints.js';
import { loadNative } from './load-native.js';
import {
  Placement,
  type Answer,
  type Completion,
  type NativeSession,
  type NativeValueInfo,
  type Wire,
} from './native.js';
import { nearestName } from './option-names.js';
import { summarizeProfile, type ProfileSummary } from './profile-summary.js';
import { parseRunOptions, type ParsedRunOptions, type RunOptions } from './run-options.js';
import type { ParsedSessionOptions } from './session-options.js';
import { bytesOf } from './tensor-data.js';
import type { InferenceValue } from './tensor-types.js';
import { WireReader, WireWriter } from './wire.js';

/** Values by name, as feeds and results have them. */
export type ValueMap = Readonly<Record<string, InferenceValue>>;

/** What becomes of a requested output: null and absent the default, a string engine memory on that device. */
export type OutputTarget = InferenceValue | DevicePlacement | null;
export class DevicePlacement {
  constructor(readonly device: string) {}
}

interface RequestedOutput {
  index: number;
  name: string;
  /** The tensor that comes back, and how it is written. */
  target?: ({ tensor: object } & RawTarget) | undefined;
  device?: string | undefined;
}

/** A session of this engine, as the backend table of onnxruntime-common sees it. */
export class NativeSessionHandler implements InferenceSessionHandler {
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  readonly inputMetadata: readonly Common.ValueMetadata[];
  readonly outputMetadata: readonly Common.ValueMetadata[];
  /** Names of inputs with a default in the model. */
  readonly overridableInputNames: readonly string[];
  readonly #native: NativeSession;
  readonly #inputs: readonly NativeValueInfo[];
  readonly #outputs: readonly NativeValueInfo[];
  /** All outputs, where the session's options want them. */
  readonly #everything: readonly RequestedOutput[];
  #released = false;

  constructor(native: NativeSession, preferredOutputLocation: ParsedSessionOptions['preferredOutputLocation']) {
    this.#native = native;
    this.#inputs = native.inputs;
    this.#outputs = native.outputs;
    const required = this.#inputs.filter((info) => !info.overridable);
    this.inputNames = required.map((info) => info.name);
    this.overridableInputNames = this.#inputs.filter((info) => info.overridable).map((info) => info.name);
    this.outputNames = this.#outputs.map((info) => info.name);
    this.inputMetadata = required.map(metadataOf);
    this.outputMetadata = this.#outputs.map(metadataOf);
    const device = native.devices.find((name) => name !== 'cpu');
    this.#everything = this.outputNames.map((name, index) => {
      const location =
        typeof preferredOutputLocation === 'string' ? preferredOutputLocation : preferredOutputLocation.get(name);
      // As with onnxruntime-node, a session on the CPU gives CPU tensors whatever was preferred.
      return { index, name, device: location === 'gpu-buffer' ? device : undefined };
    });
  }

  get native(): NativeSession {
    return this.#native;
  }

  get released(): boolean {
    return this.#released;
  }

  async run(
    feeds: SessionHandler.FeedsType | ValueMap,
    fetches?: Readonly<Record<string, OutputTarget>>,
    options?: Common.RunOptions,
  ): Promise<SessionHandler.ReturnType> {
    this.#ensureOpen();
    const parsed = parseRunOptions(options);
    throwIfAborted(parsed);
    const { wire, requested } = this.#encode(feeds, fetches);
    let settle: Completion<Wire> | undefined;
    let job: number;
    try {
      const answer = this.#native.run(wire.numbers, wire.items, parsed.native, (error, done) => settle?.(error, done));
      if (typeof answer !== 'number') return decode(wire, answer, requested);
      job = answer;
    } catch (error) {
      throw fromNative(error);
    } finally {
      wire.giveBack();
    }
    try {
      const result = await completion<Wire>(job, parsed.signal, (callback) => {
        settle = callback;
      });
      return decode(wire, result, requested);
    } catch (error) {
      throw fromNative(error, parsed.signal?.reason);
    }
  }

  runSync(
    feeds: SessionHandler.FeedsType | ValueMap,
    fetches?: Readonly<Record<string, OutputTarget>>,
    options?: RunOptions,
  ): SessionHandler.ReturnType {
    this.#ensureOpen();
    const parsed = parseRunOptions(options);
    throwIfAborted(parsed);
    const { wire, requested } = this.#encode(feeds, fetches);
    try {
      return decode(wire, this.#native.runSync(wire.numbers, wire.items, parsed.native), requested);
    } catch (error) {
      throw fromNative(error);
    } finally {
      wire.giveBack();
    }
  }

  /** Lets runs that have begun finish, then returns all memory. Rejects if that was asked for before. */
  async dispose(): Promise<void> {
    this.#ensureOpen();
    this.#released = true;
    await new Promise<void>((resolve, reject) => {
      this.#native.release((error) => {
        if (error === undefined) resolve();
        else reject(fromNative(error));
      });
    });
  }

  allocate(type: ElementType, dims: readonly number[], device: string): EngineTensor {
    this.#ensureOpen();
    return callNative(() => new EngineTensor(this.#native.allocate(type.code, dims, device)));
  }

  startProfiling(): void {
    this.#ensureOpen();
    callNative(() => this.#native.startProfiling());
  }

  endProfiling(): ProfileSummary | undefined {
    this.#ensureOpen();
    const profile = callNative(() => this.#native.endProfiling());
    return profile && summarizeProfile(profile.path, profile.trace);
  }

  #ensureOpen(): void {
    if (this.#released) throw new InferenceError('DISPOSED', 'Session already disposed.');
  }

  /** Reads all of the user's objects, then checks them, then writes them down. */
  #encode(
    feeds: Readonly<Record<string, unknown>>,
    fetches: Readonly<Record<string, OutputTarget>> | undefined,
  ): { wire: WireWriter; requested: readonly RequestedOutput[] } {
    const fed: (RawValue | undefined)[] = [];
    let count = 0;
    for (const info of this.#inputs) {
      const value = feedOf(feeds, info.name);
      if (value === undefined && !info.overridable) throw missingInput(info.name, feeds, this.inputNames);
      if (value !== undefined) count++;
      fed.push(value === undefined ? undefined : readValue(value, info));
    }
    const requested = fetches === undefined ? this.#everything : this.#readFetches(fetches);

    // From here on, nothing of the user's runs before the addon has taken the bytes.
    const wire = WireWriter.take();
    this.#inputs.forEach((info, index) => {
      const raw = fed[index];
      if (raw !== undefined) checkValue(raw, info);
    });
    for (const { index, target } of requested) {
      if (target !== undefined) checkValue(target.raw, this.#outputs[index] as NativeValueInfo, 'output');
    }
    wire.number(count);
    fed.forEach((raw, index) => {
      if (raw === undefined) return;
      wire.number(index);
      writeValue(wire, raw);
    });
    wire.number(requested.length);
    for (const { index, target, device } of requested) {
      wire.number(index);
      if (target !== undefined && target.copy === undefined) {
        wire.number(Placement.Target);
        writeValue(wire, target.raw);
      } else if (device !== undefined) {
        wire.number(Placement.Device);
        wire.item(device);
      } else wire.number(Placement.JavaScript);
    }
    return { wire, requested };
  }

  #readFetches(fetches: Readonly<Record<string, OutputTarget>>): RequestedOutput[] {
    const requested: RequestedOutput[] = [];
    for (const output of this.#everything) {
      if (!Object.hasOwn(fetches, output.name)) continue;
      const target = fetches[output.name];
      const { index, name } = output;
      if (target === null || target === undefined) requested.push(output);
      else if (target instanceof DevicePlacement) requested.push({ index, name, device: target.device });
      else {
        const read = readTarget(target, this.#outputs[index] as NativeValueInfo);
        requested.push({ index, name, target: { tensor: target, ...read } });
      }
    }
    return requested;
  }
}

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

/** The jobs that each signal ends. They share one listener, because Node.js warns of a leak from the eleventh on. */
const cancellable = new WeakMap<AbortSignal, { jobs: Set<number>; abort: () => void }>();

/** Cancels a job when `signal` aborts, or has; returns what to call when the job has ended. */
function cancelOnAbort(signal: AbortSignal, job: number): () => void {
  if (signal.aborted) {
    loadNative().cancel(job); // by a getter of the feeds
    return () => undefined;
  }
  const known = cancellable.get(signal);
  const jobs = known?.jobs ?? new Set<number>();
  const abort =
    known?.abort ??
    ((): void => {
      for (const each of jobs) loadNative().cancel(each);
    });
  if (known === undefined) {
    signal.addEventListener('abort', abort, { once: true });
    cancellable.set(signal, { jobs, abort });
  }
  jobs.add(job);
  return () => {
    jobs.delete(job);
    if (jobs.size > 0) return;
    cancellable.delete(signal);
    signal.removeEventListener('abort', abort);
  };
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

/** The value given for an input; what every object inherits ('constructor', '__proto__', ...) is none. */
export function feedOf(feeds: Readonly<Record<string, unknown>>, name: string): unknown {
  return name in Object.prototype && !Object.hasOwn(feeds, name) ? undefined : feeds[name];
}

const plain = { writable: true, enumerable: true, configurable: true } as const;

function decode(run: WireWriter, answer: Answer, requested: readonly RequestedOutput[]): SessionHandler.ReturnType {
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

function metadataOf(info: NativeValueInfo): Common.ValueMetadata {
  const type = elementTypeOfCode(info.elementType);
  if (info.kind !== 'tensor' || info.optional || type === undefined) return { name: info.name, isTensor: false };
  return { name: info.name, isTensor: true, type: type.name, shape: info.shape ?? [] };
}

/** About the first input that has no value: it is named in the error, and so are the others. */
export function missingInput(
  name: string,
  feeds: Readonly<Record<string, unknown>>,
  known: readonly string[],
): InferenceError {
  if (types.isMap(feeds)) {
    const message = `input '${name}' is missing in 'feeds', which is a Map: give Object.fromEntries(feeds).`;
    return new InferenceError('INVALID_ARGUMENT', message, { input: name });
  }
  const strays = Object.keys(feeds).filter((key) => !known.includes(key));
  const nearest = nearestName(name, strays);
  const others = known.filter((other) => other !== name && feedOf(feeds, other) === undefined);
  const also = others.length > 0 ? ` So ${others.length > 1 ? 'are' : 'is'} ${listed(others)}.` : '';
  const hint =
    nearest !== undefined
      ? ` Was it meant by '${nearest}'?`
      : strays.length > 0
        ? ` 'feeds' has ${listed(strays)}, the model's inputs are ${listed(known)}.`
        : '';
  return new InferenceError('INVALID_ARGUMENT', `input '${name}' is missing in 'feeds'.${also}${hint}`, {
    input: name,
  });
}
