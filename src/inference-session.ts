import {
  TRACE_EVENT_BEGIN,
  TRACE_EVENT_END,
  TRACE_FUNC_BEGIN,
  TRACE_FUNC_END,
  type InferenceSession as CommonSession,
  type InferenceSessionHandler,
  type Tensor,
} from 'onnxruntime-common';

import { resolveHandler } from './backend.js';
import { InferenceError, typeError } from './errors.js';
import { typeNameHint } from './hints.js';
import { describeSession } from './inspect/describe.js';
import type { SessionGraph } from './inspect/graph.js';
import { warmFeeds, type WarmUpShapes } from './inspect/warm-feeds.js';
import { IoBinding } from './io-binding.js';
import { createHandlerSync } from './load-model.js';
import { parseModelArguments, parseModelArgumentsSync } from './model-arguments.js';
import { isModelStream, type ModelStream } from './model-source.js';
import type { NativeMetadata, NativePlacement } from './native.js';
import { withTimeout } from './options/load-timeout.js';
import type { RunOptions as InfernodeRunOptions } from './options/run-options.js';
import type { SessionOptions as InfernodeSessionOptions } from './options/session-options.js';
import type { ProfileSummary } from './profile-summary.js';
import { namingAddress, readModel } from './read-model.js';
import { runForeign } from './run/foreign-run.js';
import type { ValueMap } from './run/outputs.js';
import { checkOptions, parseRunArguments } from './run/run-arguments.js';
import { NativeSessionHandler } from './session-handler.js';
import { elementTypeOfName } from './tensor/element-types.js';
import type { EngineTensor } from './tensor/engine-tensor.js';
import type { Checked, FeedsOf, ModelTypes, OutputsOf } from './model-types.js';
import { openSharedSession, shareSession, type SharedSession } from './shared-session.js';
import { sizeOf } from './tensor/tensor.js';
import { describe, show } from './tensor/tensor-data.js';

/** What the model file says of itself: producer, versions, operator sets, custom properties. */
export type ModelMetadata = NativeMetadata;
/** Where a node of the optimized graph runs. */
export type NodePlacement = NativePlacement;

type Results = CommonSession.ReturnType;
type Fetches = CommonSession.FetchesType;

/** The constructor, which no user may call. */
export let makeSession: (handler: InferenceSessionHandler) => InferenceSession;

/** One loaded model. All members may be called while runs are pending; runs are concurrent. */
export class InferenceSession implements CommonSession {
  /** What does the work: this engine's session, or that of a backend registered by someone else. @internal */
  readonly handler: InferenceSessionHandler;

  static {
    makeSession = (handler) => new this(handler);
  }

  private constructor(handler: InferenceSessionHandler) {
    if (typeof handler !== 'object' || ArrayBuffer.isView(handler)) {
      throw typeError('A session is made by await InferenceSession.create(model), or by createSync.');
    }
    this.handler = handler;
  }

  /**
   * Loads a model, `.onnx` or `.ort`, from a file (mapped, not read) or from bytes (copied at the call), on a thread of
   * the engine; a URL, Blob, Response or stream is read first. Rejects with TypeError and RangeError for wrong arguments and with InferenceError for everything else:
   * IO for a file that cannot be read, INVALID_MODEL, UNSUPPORTED_OPERATOR, PROVIDER_UNAVAILABLE, OUT_OF_MEMORY,
   * ABORTED.
   */
  static create(
    model: string | ArrayBufferLike | Uint8Array | ModelStream,
    options?: InferenceSession.SessionOptions,
  ): Promise<InferenceSession>;
  static create(
    buffer: ArrayBufferLike,
    byteOffset: number,
    byteLength?: number,
    options?: InferenceSession.SessionOptions,
  ): Promise<InferenceSession>;
  /** `create` of a model whose types `infernode types` wrote: feeds and results are checked against them. */
  static create<M extends ModelTypes>(
    model: string | ArrayBufferLike | Uint8Array | ModelStream,
    options?: InferenceSession.SessionOptions,
  ): Promise<TypedInferenceSession<M>>;
  static async create(...args: unknown[]): Promise<InferenceSession> {
    TRACE_FUNC_BEGIN();
    TRACE_EVENT_BEGIN('InferenceSession.create');
    const { source, options } = parseModelArguments(args);
    const session = await withTimeout(options, async (bounded) => {
      if (!isModelStream(source)) return makeSession(await resolveHandler(source, bounded));
      const bytes = await readModel(source, bounded);
      return makeSession(await namingAddress(source, () => resolveHandler(bytes, bounded)));
    });
    TRACE_EVENT_END('InferenceSession.create');
    TRACE_FUNC_END();
    return session;
  }

  /** `create` on the calling thread, by this engine whatever else is registered. Throws what `create` rejects with. */
  static createSync(
    pathOrBuffer: string | URL | ArrayBufferLike | Uint8Array,
    options?: InferenceSession.SessionOptions,
  ): InferenceSession;
  static createSync(
    buffer: ArrayBufferLike,
    byteOffset: number,
    byteLength?: number,
    options?: InferenceSession.SessionOptions,
  ): InferenceSession;
  static createSync<M extends ModelTypes>(
    model: string | URL | ArrayBufferLike | Uint8Array,
    options?: InferenceSession.SessionOptions,
  ): TypedInferenceSession<M>;
  static createSync(...args: unknown[]): InferenceSession {
    const { source, options } = parseModelArgumentsSync(args);
    return makeSession(createHandlerSync(source, options));
  }

  /**
   * The session that `share` named, in another thread of its process: the same weights, plans and memory, and runs of
   * all threads side by side. Each who opens it releases it; the last release returns the memory. Throws TypeError for
   * what is no handle, and InferenceError: INVALID_ARGUMENT for a handle of another process, DISPOSED where all have
   * released the session.
   */
  static fromShared(handle: SharedSession): InferenceSession;
  static fromShared<M extends ModelTypes>(handle: SharedSession): TypedInferenceSession<M>;
  static fromShared(handle: SharedSession): InferenceSession {
    return makeSession(openSharedSession(handle));
  }

  /**
   * A handle by which worker threads open this session with `fromShared`: plain data for `postMessage` or `workerData`.
   * Throws INVALID_ARGUMENT for a session of another backend, and DISPOSED.
   */
  share(): SharedSession {
    return shareSession(this.native());
  }

  /**
   * Computes outputs. Inputs are read during the call: what happens to them afterwards has no effect. `fetches` names
   * the outputs that are wanted, or gives tensors that they are written into (the same objects come back), or null for
   * those the engine shall make. All outputs are computed without it. Rejects with TypeError and RangeError for
   * arguments and values that no model takes, and with InferenceError: INVALID_ARGUMENT for an input that is missing or of
   * another type, SHAPE_MISMATCH for dims that this model does not take, ABORTED by `signal`, `timeout` or `terminate`,
   * OUT_OF_MEMORY, DISPOSED.
   */
  run(feeds: ValueMap | IoBinding, options?: InferenceSession.RunOptions): Promise<Results>;
  run(feeds: ValueMap, fetches: Fetches | undefined, options?: InferenceSession.RunOptions): Promise<Results>;
  async run(feeds: ValueMap | IoBinding, arg1?: unknown, arg2?: unknown): Promise<Results> {
    TRACE_FUNC_BEGIN();
    TRACE_EVENT_BEGIN('InferenceSession.run');
    let results: Results;
    if (feeds instanceof IoBinding) {
      feeds.checkHandler(this.handler);
      results = await feeds.run(checkOptions(arg1));
    } else {
      const { fetches, options } = parseRunArguments(this, feeds, arg1, arg2);
      results =
        this.handler instanceof NativeSessionHandler
          ? await this.handler.run(feeds, fetches, options)
          : await runForeign(this.handler, feeds, fetches, options);
    }
    TRACE_EVENT_END('InferenceSession.run');
    TRACE_FUNC_END();
    return results;
  }

  /**
   * `run` on the calling thread. Inputs are not copied. Throws what `run` rejects with, and INVALID_ARGUMENT for a
   * session of another backend.
   */
  runSync(feeds: ValueMap | IoBinding, options?: InferenceSession.RunOptions): Results;
  runSync(feeds: ValueMap, fetches: Fetches | undefined, options?: InferenceSession.RunOptions): Results;
  runSync(feeds: ValueMap | IoBinding, arg1?: unknown, arg2?: unknown): Results {
    if (feeds instanceof IoBinding) {
      feeds.checkHandler(this.handler);
      return feeds.runSync(checkOptions(arg1));
    }
    const { fetches, options } = parseRunArguments(this, feeds, arg1, arg2);
    return this.native().runSync(feeds, fetches, options);
  }

  /**
   * Writes the trace of `enableProfiling` where nobody ended it, lets runs that have begun finish, then returns all memory. Later runs, and a second release, reject with DISPOSED.
   */
  async release(): Promise<void> {
    return this.handler.dispose();
  }

  /** Releases the session without waiting; does nothing for one that is released already. */
  [Symbol.dispose](): void {
    this[Symbol.asyncDispose]().catch(() => undefined);
  }

  /** `release`, but for one that is released already: then it does nothing. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!(this.handler instanceof NativeSessionHandler && this.handler.released)) await this.release();
  }

  /** Begins a profile, as the option `enableProfiling` does at load. Throws DISPOSED for a session that is released. */
  startProfiling(): void {
    this.handler.startProfiling();
  }

  /**
   * Ends the profile: writes the trace file and returns its summary, undefined if there is no profile. A file that
   * cannot be written gives a warning. Throws DISPOSED for a session that is released.
   */
  endProfiling(): ProfileSummary | undefined {
    const summary: unknown = this.handler.endProfiling();
    return summary as ProfileSummary | undefined;
  }

  /** Names of the inputs that must be fed, in the model's order. */
  get inputNames(): readonly string[] {
    return this.handler.inputNames;
  }

  /** Names of the outputs, in the model's order. */
  get outputNames(): readonly string[] {
    return this.handler.outputNames;
  }

  /**
   * Type and shape of each of `inputNames`; a dim is a number, or the name of one that is free ('' where it has none).
   */
  get inputMetadata(): readonly InferenceSession.ValueMetadata[] {
    return this.handler.inputMetadata;
  }

  /** Type and shape of each of `outputNames`, as those of inputs. */
  get outputMetadata(): readonly InferenceSession.ValueMetadata[] {
    return this.handler.outputMetadata;
  }

  /** What the model file says of itself. Throws INVALID_ARGUMENT for a session of another backend. */
  get metadata(): ModelMetadata {
    return this.native().native.metadata;
  }

  /**
   * Where each node of the graph runs, and why; the CPU's own fusions (level `extended`) join some of them later.
   * Throws INVALID_ARGUMENT for a session of another backend.
   */
  get placement(): readonly NodePlacement[] {
    return this.native().native.placement;
  }

  /**
   * Names of the inputs that have a default in the model: they may be fed, and are not among `inputNames`. Throws
   * INVALID_ARGUMENT for a session of another backend.
   */
  get overridableInputNames(): readonly string[] {
    return this.native().overridableInputNames;
  }

  /**
   * Bytes of host memory that the session holds: weights, packed or not, and what runs keep for the next. Throws
   * INVALID_ARGUMENT for a session of another backend.
   */
  get memoryBytes(): number {
    return this.native().native.memoryBytes();
  }

  /**
   * The graph as it runs, after the optimizer: nodes, types and shapes, where each node runs, and what memory is for.
   * Throws INVALID_ARGUMENT for a session of another backend, and DISPOSED.
   */
  graph(): SessionGraph {
    return this.native().graph();
  }

  /** The same for people: a text of some lines. Throws what `graph` throws. */
  describe(): string {
    return describeSession(this, this.graph());
  }

  /**
   * Runs the model on zeros of these shapes, so that the first run of each finds its plan made and its memory there:
   * dims by input name, or sizes by the names of free dims; several to warm up for several. Rejects with what `run`
   * rejects with, and RangeError for names that there are not.
   */
  async warmUp(...shapes: readonly WarmUpShapes[]): Promise<void> {
    const { inputs } = this.native().native;
    for (const each of shapes.length === 0 ? [{}] : shapes) await this.run(warmFeeds(inputs, each));
  }

  /** Inputs and outputs to fix for many runs. Throws INVALID_ARGUMENT for a session of another backend. */
  createIoBinding(): IoBinding {
    return new IoBinding(this.native());
  }

  /**
   * A tensor of zeros in the engine's memory, on the host or on a device of the session's providers ('cuda:0', ...).
   * Throws TypeError for another type or dims that are no integers, RangeError for negative ones, and InferenceError:
   * OUT_OF_MEMORY, DISPOSED, INVALID_ARGUMENT for a device that the session does not have or a session of another
   * backend.
   */
  allocate(type: Tensor.Type, dims: readonly number[], device = 'cpu'): EngineTensor {
    const elementType = elementTypeOfName(type);
    if (elementType === undefined)
      throw typeError(`Unsupported tensor type: ${show(type)}.${typeof type === 'string' ? typeNameHint(type) : ''}`);
    sizeOf(dims);
    if (typeof device !== 'string') throw typeError(`A device must be a string, got ${describe(device)}.`);
    return this.native().allocate(elementType, dims, device);
  }

  /** This session, as one whose feeds no types check. */
  get untyped(): InferenceSession {
    return this;
  }

  private native(): NativeSessionHandler {
    if (this.handler instanceof NativeSessionHandler) return this.handler;
    throw new InferenceError(
      'INVALID_ARGUMENT',
      'This session belongs to another backend, which has no such operation.',
    );
  }
}

/**
 * A session whose feeds and results are checked against a model's types. `untyped` is the same one for functions that take
 * an InferenceSession. A binding of it runs by its own `run`, and what is bound is checked then.
 */
export interface TypedInferenceSession<M extends ModelTypes> extends Omit<InferenceSession, 'run' | 'runSync'> {
  /** As `InferenceSession.run`, and rejects with the same errors: dims that are free are checked when it runs. */
  run<F extends FeedsOf<M>>(feeds: F & Checked<M, F>, options?: InferenceSession.RunOptions): Promise<OutputsOf<M>>;
  run<F extends FeedsOf<M>, const N extends keyof M['outputs']>(
    feeds: F & Checked<M, F>,
    fetches: readonly N[],
    options?: InferenceSession.RunOptions,
  ): Promise<Pick<OutputsOf<M>, N>>;
  /** As `InferenceSession.runSync`, and throws the same errors. */
  runSync<F extends FeedsOf<M>>(feeds: F & Checked<M, F>, options?: InferenceSession.RunOptions): OutputsOf<M>;
  runSync<F extends FeedsOf<M>, const N extends keyof M['outputs']>(
    feeds: F & Checked<M, F>,
    fetches: readonly N[],
    options?: InferenceSession.RunOptions,
  ): Pick<OutputsOf<M>, N>;
  /** The same session, whose feeds nobody checks before they run. */
  readonly untyped: InferenceSession;
}

/* eslint-disable @typescript-eslint/no-empty-object-type -- interfaces, so that users may augment them */
export namespace InferenceSession {
  export interface SessionOptions extends InfernodeSessionOptions {}
  export interface RunOptions extends InfernodeRunOptions {}
  export type OnnxValueMapType = CommonSession.OnnxValueMapType;
  export type NullableOnnxValueMapType = CommonSession.NullableOnnxValueMapType;
  export type FeedsType = CommonSession.FeedsType;
  export type FetchesType = CommonSession.FetchesType;
  export type ReturnType = CommonSession.ReturnType;
  export type ExecutionProviderOptionMap = CommonSession.ExecutionProviderOptionMap;
  export type ExecutionProviderName = CommonSession.ExecutionProviderName;
  export type ExecutionProviderConfig = CommonSession.ExecutionProviderConfig;
  export type ExecutionProviderOption = CommonSession.ExecutionProviderOption;
  export type CpuExecutionProviderOption = CommonSession.CpuExecutionProviderOption;
  export type CudaExecutionProviderOption = CommonSession.CudaExecutionProviderOption;
  export type DmlExecutionProviderOption = CommonSession.DmlExecutionProviderOption;
  export type TensorRtExecutionProviderOption = CommonSession.TensorRtExecutionProviderOption;
  export type WebAssemblyExecutionProviderOption = CommonSession.WebAssemblyExecutionProviderOption;
  export type WebGLExecutionProviderOption = CommonSession.WebGLExecutionProviderOption;
  export type XnnpackExecutionProviderOption = CommonSession.XnnpackExecutionProviderOption;
  export type WebGpuExecutionProviderOption = CommonSession.WebGpuExecutionProviderOption;
  export type WebNNContextOptions = CommonSession.WebNNContextOptions;
  export type WebNNOptionsWithoutMLContext = CommonSession.WebNNOptionsWithoutMLContext;
  export type WebNNOptionsWithMLContext = CommonSession.WebNNOptionsWithMLContext;
  export type WebNNOptionsWebGpu = CommonSession.WebNNOptionsWebGpu;
  export type WebNNExecutionProviderOption = CommonSession.WebNNExecutionProviderOption;
  export type QnnExecutionProviderOption = CommonSession.QnnExecutionProviderOption;
  export type CoreMLExecutionProviderOption = CommonSession.CoreMLExecutionProviderOption;
  export type NnapiExecutionProviderOption = CommonSession.NnapiExecutionProviderOption;
  export type ValueMetadataBase = CommonSession.ValueMetadataBase;
  export type NonTensorValueMetadata = CommonSession.NonTensorValueMetadata;
  export type TensorValueMetadata = CommonSession.TensorValueMetadata;
  export type ValueMetadata = CommonSession.ValueMetadata;
}
/* eslint-enable @typescript-eslint/no-empty-object-type */
