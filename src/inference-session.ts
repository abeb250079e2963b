import {
  InferenceSession as CommonSession,
  Tensor as CommonTensor,
  TRACE_EVENT_BEGIN,
  TRACE_EVENT_END,
  TRACE_FUNC_BEGIN,
  TRACE_FUNC_END,
  type InferenceSessionHandler,
  type Tensor,
} from 'onnxruntime-common';

import { createHandler, createHandlerSync, isShadowed, requestedProviders, unknownProviderHint } from './backend.js';
import { elementTypeOfName, typeNameHint } from './element-types.js';
import type { EngineTensor } from './engine-tensor.js';
import { InferenceError, rangeError, typeError } from './errors.js';
import { nameHint } from './hints.js';
import { IoBinding } from './io-binding.js';
import { parseModelArguments, withOwnBytes } from './model-arguments.js';
import type { NativeMetadata, NativePlacement } from './native.js';
import type { ProfileSummary } from './profile-summary.js';
import { warnOnce } from './option-names.js';
import { parseProviders } from './provider-options.js';
import type { RunOptions as InfernodeRunOptions } from './run-options.js';
import { feedOf, missingInput, NativeSessionHandler, type ValueMap } from './session-handler.js';
import type { SessionOptions as InfernodeSessionOptions } from './session-options.js';
import { sizeOf } from './tensor.js';
import { describe, show } from './tensor-data.js';

/** About the model file. */
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
   * Loads a model from a file (mapped, not read) or from bytes (copied at the call), on a thread of the engine. Throws
   * TypeError and RangeError for wrong arguments and InferenceError for everything else.
   */
  static create(
    pathOrBuffer: string | ArrayBufferLike | Uint8Array,
    options?: InferenceSession.SessionOptions,
  ): Promise<InferenceSession>;
  static create(
    buffer: ArrayBufferLike,
    byteOffset: number,
    byteLength?: number,
    options?: InferenceSession.SessionOptions,
  ): Promise<InferenceSession>;
  static async create(...args: unknown[]): Promise<InferenceSession> {
    TRACE_FUNC_BEGIN();
    TRACE_EVENT_BEGIN('InferenceSession.create');
    const { source, options } = parseModelArguments(args);
    const session = makeSession(await resolveHandler(source, options));
    TRACE_EVENT_END('InferenceSession.create');
    TRACE_FUNC_END();
    return session;
  }

  /** `create` on the calling thread, by this engine whatever else is registered. */
  static createSync(
    pathOrBuffer: string | ArrayBufferLike | Uint8Array,
    options?: InferenceSession.SessionOptions,
  ): InferenceSession;
  static createSync(
    buffer: ArrayBufferLike,
    byteOffset: number,
    byteLength?: number,
    options?: InferenceSession.SessionOptions,
  ): InferenceSession;
  static createSync(...args: unknown[]): InferenceSession {
    const { source, options } = parseModelArguments(args);
    return makeSession(createHandlerSync(source, options));
  }

  /**
   * Computes outputs. Inputs are read during the call: what happens to them afterwards has no effect.
   * `fetches` names the outputs that are wanted, or gives tensors that they are written into (the same objects come
   * back), or null for those the engine shall make. All outputs are computed without it.
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
      const { fetches, options } = this.parseRunArguments(feeds, arg1, arg2);
      results =
        this.handler instanceof NativeSessionHandler
          ? await this.handler.run(feeds, fetches, options)
          : await this.runForeign(feeds, fetches, options);
    }
    TRACE_EVENT_END('InferenceSession.run');
    TRACE_FUNC_END();
    return results;
  }

  /** `run` on the calling thread. Inputs are not copied. */
  runSync(feeds: ValueMap | IoBinding, options?: InferenceSession.RunOptions): Results;
  runSync(feeds: ValueMap, fetches: Fetches | undefined, options?: InferenceSession.RunOptions): Results;
  runSync(feeds: ValueMap | IoBinding, arg1?: unknown, arg2?: unknown): Results {
    if (feeds instanceof IoBinding) {
      feeds.checkHandler(this.handler);
      return feeds.runSync(checkOptions(arg1));
    }
    const { fetches, options } = this.parseRunArguments(feeds, arg1, arg2);
    return this.native().runSync(feeds, fetches, options);
  }

  /** Lets runs that have begun finish, then returns all memory. Later calls reject with code DISPOSED. */
  async release(): Promise<void> {
    return this.handler.dispose();
  }

  /** Releases the session without waiting; does nothing for one that is released already. */
  [Symbol.dispose](): void {
    this[Symbol.asyncDispose]().catch(() => undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!(this.handler instanceof NativeSessionHandler && this.handler.released)) await this.release();
  }

  /** Begins a profile, as the option `enableProfiling` does at load. */
  startProfiling(): void {
    this.handler.startProfiling();
  }

  /** Ends the profile: writes the trace file and returns its summary. Returns undefined if there is no profile. */
  endProfiling(): ProfileSummary | undefined {
    const summary: unknown = this.handler.endProfiling();
    return summary as ProfileSummary | undefined;
  }

  get inputNames(): readonly string[] {
    return this.handler.inputNames;
  }

  get outputNames(): readonly string[] {
    return this.handler.outputNames;
  }

  get inputMetadata(): readonly InferenceSession.ValueMetadata[] {
    return this.handler.inputMetadata;
  }

  get outputMetadata(): readonly InferenceSession.ValueMetadata[] {
    return this.handler.outputMetadata;
  }

  /** Producer, versions, operator sets and custom properties of the model. */
  get metadata(): ModelMetadata {
    return this.native().native.metadata;
  }

  /** Where each node of the graph runs, and why; the CPU's own fusions (level `extended`) join some of them later. */
  get placement(): readonly NodePlacement[] {
    return this.native().native.placement;
  }

  /** Names of the inputs that have a default in the model: they may be fed, and are not among `inputNames`. */
  get overridableInputNames(): readonly string[] {
    return this.native().overridableInputNames;
  }

  /** Bytes of host memory that the session holds. */
  get memoryBytes(): number {
    return this.native().native.memoryBytes();
  }

  createIoBinding(): IoBinding {
    return new IoBinding(this.native());
  }

  /** A tensor of zeros in the engine's memory, on the host or on a device of the session's providers ('cuda:0', ...). */
  allocate(type: Tensor.Type, dims: readonly number[], device = 'cpu'): EngineTensor {
    const elementType = elementTypeOfName(type);
    if (elementType === undefined)
      throw typeError(`Unsupported tensor type: ${show(type)}.${typeof type === 'string' ? typeNameHint(type) : ''}`);
    sizeOf(dims);
    if (typeof device !== 'string') throw typeError(`A device must be a string, got ${describe(device)}.`);
    return this.native().allocate(elementType, dims, device);
  }

  private native(): NativeSessionHandler {
    if (this.handler instanceof NativeSessionHandler) return this.handler;
    throw new InferenceError(
      'INVALID_ARGUMENT',
      'This session belongs to another backend, which has no such operation.',
    );
  }

  private parseRunArguments(feeds: unknown, arg1: unknown, arg2: unknown): RunArguments {
    if (typeof feeds !== 'object' || feeds === null || isTensor(feeds) || Array.isArray(feeds)) {
      const hint = isTensor(feeds) ? ` It is a Tensor: give { '${this.inputNames[0]}': tensor }.` : '';
      throw typeError(
        `'feeds' must be an object that use input names as keys and OnnxValue as corresponding values, got ${describe(feeds)}.${hint}`,
      );
    }
    if (arg1 === undefined) return { fetches: undefined, options: checkOptions(arg2) };
    if (typeof arg1 !== 'object') throw typeError("Unexpected argument[1]: must be 'fetches' or 'options'.");
    if (arg1 === null) throw typeError('Unexpected argument[1]: cannot be null.');
    if (isTensor(arg1)) throw typeError("'fetches' cannot be a Tensor");
    if (Array.isArray(arg1)) {
      return { fetches: this.fetchesOfNames(arg1 as unknown[]), options: checkOptions(arg2) };
    }
    // It is fetches if any output is a key of its own with a value that fetches may have.
    const given = arg1 as Record<string, unknown>;
    const fetches: [name: string, value: Tensor | null][] = [];
    for (const name of this.outputNames) {
      if (!Object.hasOwn(given, name)) continue;
      const value = given[name];
      if (value === null || isTensor(value)) fetches.push([name, value]);
    }
    warnStrays(given, this.outputNames);
    if (fetches.length === 0) return { fetches: undefined, options: given };
    return { fetches: Object.fromEntries(fetches), options: checkOptions(arg2) };
  }

  private fetchesOfNames(names: readonly unknown[]): Record<string, null> {
    if (names.length === 0) throw typeError("'fetches' cannot be an empty array.");
    const fetches: [name: string, value: null][] = [];
    for (const name of names) {
      if (typeof name !== 'string') throw typeError("'fetches' must be a string array or an object.");
      if (!this.outputNames.includes(name)) {
        const hint = nameHint(name, this.outputNames, "model's outputs");
        throw rangeError(`'fetches' contains invalid output name: ${name}.${hint}`, { output: name });
      }
      fetches.push([name, null]);
    }
    return Object.fromEntries(fetches);
  }

  private async runForeign(
    feeds: ValueMap,
    fetches: RunArguments['fetches'],
    options: InferenceSession.RunOptions = {},
  ): Promise<Results> {
    for (const name of this.inputNames) {
      if (feedOf(feeds, name) === undefined) throw missingInput(name, feeds, this.inputNames);
    }
    const all = fetches ?? Object.fromEntries(this.outputNames.map((name) => [name, null]));
    const results = await this.handler.run(feeds as CommonSession.FeedsType, all, options);
    const values = Object.entries(results).map(([name, value]) => [
      name,
      value instanceof CommonTensor
        ? value
        : new CommonTensor((value as Tensor).type, (value as Tensor).data, (value as Tensor).dims),
    ]);
    return Object.fromEntries(values) as Results;
  }
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

interface RunArguments {
  fetches: Readonly<Record<string, Tensor | null>> | undefined;
  options: InferenceSession.RunOptions | undefined;
}

function checkOptions(options: unknown): InferenceSession.RunOptions | undefined {
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

/** Goes through onnxruntime-common's table, where others may have registered backends. */
async function resolveHandler(
  source: string | Uint8Array,
  options: InferenceSession.SessionOptions,
): Promise<InferenceSessionHandler> {
  const { executionProviders } = options;
  const requested = executionProviders === undefined ? [] : parseProviders(executionProviders).map(({ name }) => name);
  const own = withOwnBytes(source, options); // the table, and Blobs, are read before the bytes are
  if (isShadowed(requested)) return createHandler(own.source, own.options);
  const given = options.providerFallback === false ? { ...own.options, [requestedProviders]: requested } : own.options;
  try {
    const session =
      typeof own.source === 'string'
        ? await CommonSession.create(own.source, given)
        : await CommonSession.create(own.source, given);
    return (session as unknown as { handler: InferenceSessionHandler }).handler;
  } catch (error) {
    if (!(error instanceof Error) || error instanceof InferenceError) throw error;
    if (!error.message.startsWith('no available backend found')) throw error;
    const message = error.message + unknownProviderHint(requested);
    throw new InferenceError('PROVIDER_UNAVAILABLE', message, undefined, { cause: error });
  }
}
