import type { InferenceSession as Common, InferenceSessionHandler, SessionHandler } from 'onnxruntime-common';

import { callNative, fromNative, InferenceError } from './errors.js';
import { readGraph, type SessionGraph } from './inspect/graph.js';
import { loadNative } from './load-native.js';
import type { Completion, NativeSession, NativeValueInfo, Wire } from './native.js';
import { flushLog, forget, listenerOf } from './options/log-listeners.js';
import { warn } from './options/option-names.js';
import { parseRunOptions, type RunOptions } from './options/run-options.js';
import type { ParsedSessionOptions } from './options/session-options.js';
import { summarizeProfile, type ProfileSummary } from './profile-summary.js';
import { completion, longestTimer, runError, throwIfAborted } from './run/jobs.js';
import { decode, type OutputTarget, type ValueMap } from './run/outputs.js';
import { RunEncoder } from './run/run-encoder.js';
import { mayHoldLoop } from './run/turn.js';
import { elementTypeOfCode, type ElementType } from './tensor/element-types.js';
import { EngineTensor } from './tensor/engine-tensor.js';

/** A session of this engine, as the backend table of onnxruntime-common sees it. */
export class NativeSessionHandler implements InferenceSessionHandler {
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  readonly inputMetadata: readonly Common.ValueMetadata[];
  readonly outputMetadata: readonly Common.ValueMetadata[];
  /** Names of inputs with a default in the model. */
  readonly overridableInputNames: readonly string[];
  /** Where results are wanted to lie, as the options said. */
  readonly preferredOutputLocation: ParsedSessionOptions['preferredOutputLocation'];
  readonly #native: NativeSession;
  readonly #encoder: RunEncoder;
  readonly #logKey: number;
  #released = false;

  /**
   * `logKey`: of the listener that hears its messages, 0 for none. `profiled`: a profile began with it. `level`: the
   * least severity that is said, `env.logLevel` without it.
   */
  constructor(
    native: NativeSession,
    preferredOutputLocation: ParsedSessionOptions['preferredOutputLocation'],
    logKey = 0,
    private readonly profiled = false,
    level?: number,
  ) {
    this.#native = native;
    this.preferredOutputLocation = preferredOutputLocation;
    this.#logKey = logKey;
    forget(logKey, this);
    const { inputs, outputs } = native;
    const required = inputs.filter((info) => !info.overridable);
    this.inputNames = required.map((info) => info.name);
    this.overridableInputNames = inputs.filter((info) => info.overridable).map((info) => info.name);
    this.outputNames = outputs.map((info) => info.name);
    this.inputMetadata = required.map(metadataOf);
    this.outputMetadata = outputs.map(metadataOf);
    const device = native.devices.find((name) => name !== 'cpu');
    const everything = this.outputNames.map((name, index) => {
      const location =
        typeof preferredOutputLocation === 'string' ? preferredOutputLocation : preferredOutputLocation.get(name);
      if (location === 'cpu-pinned') return { index, name, device: 'cpu' };
      // As with onnxruntime-node, a session on the CPU gives CPU tensors where a device was preferred.
      return { index, name, device: location === 'gpu-buffer' ? device : undefined };
    });
    this.#encoder = new RunEncoder(inputs, this.inputNames, outputs, everything, (message, ofRun) => {
      warn(message, 'run', 'INFERNODE_UNKNOWN_INPUT', { hear: listenerOf(logKey), level: ofRun ?? level });
    });
  }

  /** The addon's session. */
  get native(): NativeSession {
    return this.#native;
  }

  /** Whether `dispose` was called. */
  get released(): boolean {
    return this.#released;
  }

  /**
   * One run on a thread of the engine, or on this one where it is short. `fetches` absent: all outputs. Rejects with
   * TypeError and RangeError for what cannot be fed, and with InferenceError, DISPOSED after `dispose` and ABORTED
   * among its codes.
   */
  async run(
    feeds: SessionHandler.FeedsType | ValueMap,
    fetches?: Readonly<Record<string, OutputTarget>>,
    options?: Common.RunOptions,
  ): Promise<SessionHandler.ReturnType> {
    this.#ensureOpen();
    const parsed = parseRunOptions(options, this.#logKey);
    throwIfAborted(parsed);
    const { wire, requested } = this.#encoder.encode(feeds, fetches, parsed.level);
    let settle: Completion<Wire> | undefined;
    let job: number;
    try {
      const done: Completion<Wire> = (error, result) => settle?.(error, result);
      const answer = this.#native.run(wire.numbers, wire.items, parsed.native, done, mayHoldLoop());
      if (typeof answer !== 'number') return decode(wire, answer, requested);
      job = answer;
    } catch (error) {
      throw runError(error, parsed);
    } finally {
      wire.giveBack();
    }
    const timeout = parsed.native?.timeout ?? 0;
    const expiry =
      timeout > 0 && timeout <= longestTimer ? setTimeout(() => loadNative().expire(job), timeout) : undefined;
    try {
      const result = await completion<Wire>(job, parsed.signal, (callback) => {
        settle = callback;
      });
      return decode(wire, result, requested);
    } catch (error) {
      throw runError(error, parsed);
    } finally {
      clearTimeout(expiry);
    }
  }

  /** `run` on this thread. Throws what `run` rejects with. */
  runSync(
    feeds: SessionHandler.FeedsType | ValueMap,
    fetches?: Readonly<Record<string, OutputTarget>>,
    options?: RunOptions,
  ): SessionHandler.ReturnType {
    this.#ensureOpen();
    const parsed = parseRunOptions(options, this.#logKey);
    throwIfAborted(parsed);
    const { wire, requested } = this.#encoder.encode(feeds, fetches, parsed.level);
    try {
      return decode(wire, this.#native.runSync(wire.numbers, wire.items, parsed.native), requested);
    } catch (error) {
      throw runError(error, parsed);
    } finally {
      wire.giveBack();
      flushLog();
    }
  }

  /** Writes the trace of a profile that began with the session; lets runs that have begun finish, then returns all memory. Rejects with DISPOSED if that was asked for before. */
  async dispose(): Promise<void> {
    this.#ensureOpen();
    try {
      if (this.profiled) this.#native.endProfiling();
    } catch {
      // what the memory for it lacks, the release may give back
    }
    this.#released = true;
    await new Promise<void>((resolve, reject) => {
      try {
        this.#native.release((error) => {
          forget(this.#logKey);
          if (error === undefined) resolve();
          else reject(fromNative(error));
        });
      } catch (error) {
        this.#released = false; // nothing has begun: there was no memory to ask for it
        reject(fromNative(error));
      }
    });
  }

  /**
   * A tensor of zeros in the engine's memory. Throws InferenceError: DISPOSED, OUT_OF_MEMORY, or for an unknown device.
   */
  allocate(type: ElementType, dims: readonly number[], device: string): EngineTensor {
    this.#ensureOpen();
    return callNative(() => new EngineTensor(this.#native.allocate(type.code, dims, device)));
  }

  /** Warns, once in the session's life, of feeds that no input takes: for who reads a run's feeds before the run. */
  lookForStrays(feeds: Readonly<Record<string, unknown>>): void {
    this.#encoder.lookForStrays(feeds);
  }

  /** Throws INVALID_ARGUMENT for a device that the session does not have, DISPOSED after `dispose`. */
  checkDevice(device: string, output: string): void {
    this.#ensureOpen();
    callNative(() => {
      this.#native.checkDevice(device, output);
    });
  }

  /** The graph as it runs. Throws DISPOSED after `dispose`. */
  graph(): SessionGraph {
    this.#ensureOpen();
    return readGraph(callNative(() => this.#native.graph()));
  }

  /** Begins a profile, if there is none. Throws DISPOSED after `dispose`. */
  startProfiling(): void {
    this.#ensureOpen();
    callNative(() => this.#native.startProfiling());
  }

  /** Ends the profile; undefined where there is none. Throws DISPOSED after `dispose`. */
  endProfiling(): ProfileSummary | undefined {
    this.#ensureOpen();
    const profile = callNative(() => this.#native.endProfiling());
    return profile && summarizeProfile(profile.path, profile.trace);
  }

  #ensureOpen(): void {
    if (this.#released) throw new InferenceError('DISPOSED', 'Session already disposed.');
  }
}

function metadataOf(info: NativeValueInfo): Common.ValueMetadata {
  const type = elementTypeOfCode(info.elementType);
  if (info.kind !== 'tensor' || info.optional || type === undefined) return { name: info.name, isTensor: false };
  return { name: info.name, isTensor: true, type: type.name, shape: info.shape ?? [] };
}
