import type { NativeError } from './errors.js';
import type { SimpleRunOptions, SimpleSessionOptions } from './options/generated.js';

/*
 * The typed surface of the addon: the contract between src/ and src-native/napi/.
 *
 * Values cross as a pair of a number array and an item array ("wire form"), so that a run costs few calls of Node-API.
 * A value is, in the number array:
 *   None                                      an empty optional
 *   Tensor, elementType, rank, dims...        item: typed array or string[] (to the addon), ArrayBuffer or string[] (from it)
 *   Sequence, count, values...
 *   Map, keys (a Tensor of rank 1), -1, Tensor of rank 1     where every value is one element of one type
 *   Map, keys (a Tensor of rank 1), count, values...
 *   Handle                                    item: NativeTensor
 *   InPlace                                   (only from the addon) written into the tensor that was given for it
 * Items are taken in order. The addon checks every number and every length; it trusts nothing but that no item is a
 * Proxy or has accessors.
 */
export const Kind = { None: 0, Tensor: 1, Sequence: 2, Map: 3, Handle: 4, InPlace: 5 } as const;

/**
 * Where a requested output goes: a JavaScript value, engine memory on a device (item: its name), or into what the value
 * (Tensor or Handle) that follows refers to.
 */
export const Placement = { JavaScript: 0, Device: 1, Target: 2 } as const;

/**
 * numbers of a run: feedCount, (inputIndex, value)..., outputCount, (outputIndex, placement, value if Target)...
 * numbers of a result: the values of the requested outputs, in order.
 */
export interface Wire {
  readonly numbers: Float64Array;
  readonly items: readonly unknown[];
}

/**
 * A result given at once: its items, its numbers being written over those of the run; a Wire where they do not fit
 * there.
 */
export type Answer = readonly unknown[] | Wire;

export type ModelSource = string | Uint8Array;

export interface NativeSessionOptions extends SimpleSessionOptions {
  /** In the user's order; an option's value is text as in the provider's own option table. */
  providers: { name: string; options: [key: string, value: string][] }[];
  profileFilePrefix: string;
  logSeverityLevel: number;
  freeDimensionOverrides: [dimension: string, value: number][];
  externalData: { path: string; data: Uint8Array | string }[];
  /** By which `setLog`'s function names the session's listener; 0: messages go to stderr. */
  logKey?: number;
  /** The same of the load's progress: phase as category, nodes that are done and all of them as text; 0: nobody hears. */
  progressKey?: number;
  /** `extra`, flattened: session config entries. */
  config: [key: string, value: string][];
}

export interface NativeRunOptions extends SimpleRunOptions {
  config: [key: string, value: string][];
}

export interface NativeValueInfo {
  readonly name: string;
  readonly kind: 'tensor' | 'sequence' | 'map' | 'sparse';
  /** Whether the value may be an empty optional. */
  readonly optional: boolean;
  /** ONNX element type; of a sequence, that of its tensors; of a map, that of its values; 0 where there is none. */
  readonly elementType: number;
  /** Symbols are strings, '' for an unnamed one; null: rank unknown. */
  readonly shape: readonly (number | string)[] | null;
  /** An initializer that may be fed instead. */
  readonly overridable: boolean;
}

export interface NativeMetadata {
  /** The program that wrote the file; '' in any text that the file does not have. */
  readonly producerName: string;
  /** The version of that program. */
  readonly producerVersion: string;
  /** The namespace of the model's name, as 'ai.example'. */
  readonly domain: string;
  /** The name of the main graph. */
  readonly graphName: string;
  /** The text that its author wrote about it. */
  readonly description: string;
  /** The model's own version; 0 where the file has none. */
  readonly modelVersion: number;
  /** The version of ONNX's file format that the file has. */
  readonly irVersion: number;
  /** Versions of the operator sets, by domain: 'ai.onnx' is ONNX's own. */
  readonly opsets: Readonly<Record<string, number>>;
  /** The file's own properties. */
  readonly custom: Readonly<Record<string, string>>;
}

export interface NativePlacement {
  /** The node's name. */
  readonly node: string;
  /** Its operator. */
  readonly opType: string;
  /** 'cpu', 'cuda', ... */
  readonly provider: string;
  /** Why it is there; may be empty. */
  readonly reason: string;
}

/** A tensor in the engine's memory. */
export interface NativeTensor {
  readonly elementType: number;
  readonly dims: number[];
  /** 'cpu', 'cuda:0', ... */
  readonly device: string;
  /** A copy of the bytes. */
  read(): ArrayBuffer | string[];
  write(data: ArrayBufferView | readonly string[]): void;
  /** Drops this reference; runs that use the memory keep theirs. */
  dispose(): void;
}

/** The graph as it runs: values by their places in `values`, -1 for one that is left out. */
export interface NativeGraph {
  readonly nodes: readonly {
    name: string;
    domain: string;
    opType: string;
    provider: string;
    inputs: number[];
    outputs: number[];
    madeFrom: string[];
    estimatedBytes: number;
    /** -1 where no run has measured it; scratchBytes likewise. */
    outputBytes: number;
    scratchBytes: number;
  }[];
  readonly values: readonly NativeValueInfo[];
  /** Of each value; -1 for what is no constant. */
  readonly constantBytes: readonly number[];
  readonly weightBytes: number;
  readonly keptBytes: number;
  readonly arenaBytes: number;
}

/**
 * width, height, channels, left, top, width and height of the part, width, height and channels of the result; four
 * times each which channel of the pixels a channel is (4: opaque), its factor, its shift; then whether the nearest pixel
 * is taken, whether channels come one after another, whether the result is of bytes.
 */
export type ImageNumbers = Float64Array;

/** What a transformation did: with each node that it looked at, and which files it wrote, the model first. */
export interface NativeReport {
  nodes: { name: string; opType: string; became?: string; reason?: string }[];
  files: string[];
  bytesBefore: number;
}

/** error: NativeError, or undefined. */
export type Completion<T> = (error: NativeError | undefined, result: T | undefined) => void;

export interface NativeSession {
  /** Required inputs in the model's order, then overridable initializers. */
  readonly inputs: readonly NativeValueInfo[];
  readonly outputs: readonly NativeValueInfo[];
  readonly metadata: NativeMetadata;
  readonly placement: readonly NativePlacement[];
  /** Devices of its providers, in their order, 'cpu' last. */
  readonly devices: readonly string[];
  /**
   * Takes all bytes during the call. Returns the result at once where the run is short enough for this thread and
   * `mayStay`, otherwise a job for `cancel`, and `done` is called once, never during this call. Throws NativeError.
   */
  run(
    numbers: Float64Array,
    items: readonly unknown[],
    options: NativeRunOptions | undefined,
    done: Completion<Wire>,
    mayStay: boolean,
  ): Answer | number;
  runSync(numbers: Float64Array, items: readonly unknown[], options: NativeRunOptions | undefined): Answer;
  /** `device`: 'cpu', 'null', 'cuda:0', ... */
  allocate(elementType: number, dims: readonly number[], device: string): NativeTensor;
  /** Throws NativeError, with the name of the output that is to go there, for a device that the session does not have. */
  checkDevice(device: string, output: string): void;
  startProfiling(): void;
  /** The path of the trace and its text; undefined where profiling was off. */
  endProfiling(): { path: string; trace: string } | undefined;
  /** Bytes of host memory that the session holds: weights and pooled frames. */
  memoryBytes(): number;
  /** Throws NativeError, DISPOSED after release. */
  graph(): NativeGraph;
  /**
   * By output: what its size along the axis is where all these inputs have the same number of rows along it. Throws
   * NativeError, DISPOSED after release.
   */
  joinedRows(inputs: readonly string[], axis: number): ('rows' | 'other' | 'unknown')[];
  /** A text by which `openSharedSession` finds this session. Throws NativeError, DISPOSED after release. */
  share(): string;
  /** Refuses later runs; `done` is called when the runs that have begun are over and the memory is returned. */
  release(done: Completion<undefined>): void;
}

/** provider::DeviceDescription */
export interface NativeDevice {
  device: string;
  name: string;
  memoryBytes: number;
  computeCapability: string;
  driver: string;
}

export interface NativeAddon {
  readonly version: string;
  listSupportedBackends(): { name: string; bundled: boolean }[];
  /** Returns a job for `cancel`. */
  listDevices(done: Completion<NativeDevice[]>): number;
  /** Returns a job for `cancel`. `bytes` are copied during the call. */
  createSession(source: ModelSource, options: NativeSessionOptions, done: Completion<NativeSession>): number;
  createSessionSync(source: ModelSource, options: NativeSessionOptions): NativeSession;
  /** Takes the memory of a buffer that nobody needs any more from it, and frees it. */
  detach(buffer: ArrayBuffer): void;
  /** Another object for a session of this process; releases of all of them return its memory. Throws NativeError. */
  openSharedSession(id: string): NativeSession;
  /** Messages of sessions with a `logKey` go to this function, which must not throw, on this thread. */
  setLog(hear: (key: number, severity: number, category: string, message: string) => void): void;
  /** Has it hear now what waits for this thread's next turn. */
  flushLog(): void;
  /** Copies the pixels of the part during the call. Gives the elements of the result; returns a job. */
  prepareImage(pixels: Uint8Array, how: ImageNumbers, done: Completion<ArrayBuffer>): number;
  /**
   * Reads a model, changes it as `settings`, which have all options of the transformation, say, and writes it to `output`.
   * `hear` is told "<done> <total>" and must not throw. Returns a job for `cancel`. `bytes` are copied during the call.
   */
  transform(
    source: ModelSource,
    output: string,
    transformation: string,
    settings: Readonly<Record<string, boolean | number | string | readonly string[] | Float64Array>>,
    hear: ((progress: string) => void) | undefined,
    done: Completion<NativeReport>,
  ): number;
  /** Ends a run or a load that has not completed; its `done` reports ABORTED. Other numbers are ignored. */
  cancel(job: number): void;
  /** Ends one that waits for its turn, as past its timeout; one that executes looks at the clock itself. */
  expire(job: number): void;
  /** How many runs and loads of the process execute at a time; 0: two for each processor. */
  setConcurrentRuns(most: number): void;
}
