// Written by `npm run docs:options` from src/options/schema.json: do not edit.
import type { LoadProgress } from './load-progress.js';
import type { LogListener } from './log-message.js';
import type { OptionReader } from './option-reader.js';

/** Every key that the options of a session may have. */
export const sessionOptionKeys: readonly string[] = [
  'executionProviders',
  'intraOpNumThreads',
  'interOpNumThreads',
  'freeDimensionOverrides',
  'graphOptimizationLevel',
  'enableCpuMemArena',
  'enableMemPattern',
  'executionMode',
  'optimizedModelFilePath',
  'enableProfiling',
  'profileFilePrefix',
  'logId',
  'logSeverityLevel',
  'logVerbosityLevel',
  'preferredOutputLocation',
  'enableGraphCapture',
  'extra',
  'externalData',
  'providerFallback',
  'float32MatmulPrecision',
  'memoryLimit',
  'maxConcurrentRuns',
  'modelCacheDir',
  'tuning',
  'signal',
  'timeout',
  'onLog',
  'onProgress',
];

/** Options of a session that onnxruntime-common does not declare. */
export interface OwnSessionOptions {
  /**
   * Whether a provider that cannot start makes room for the next of `executionProviders`. Where it may not, `create`
   * fails with PROVIDER_UNAVAILABLE. Default: true. Throws TypeError.
   */
  providerFallback?: boolean;
  /**
   * How exact float32 products are where faster hardware formats exist: as float32 ('highest'), about 16 bits ('high',
   * with AMX) or 8 ('medium', with AMX, AVX512_BF16 or bfloat16 of arm64). Default: 'highest'. Throws TypeError.
   */
  float32MatmulPrecision?: 'highest' | 'high' | 'medium';
  /**
   * Bytes that one run may hold; a run that needs more fails with OUT_OF_MEMORY before it asks the system. What long
   * strings hold beside their tensor does not count. 0: no limit. Default: 0. Throws TypeError; RangeError outside 0 to
   * 2^53 - 1.
   */
  memoryLimit?: number;
  /**
   * How many of the session's asynchronous runs execute at a time; others wait for their turn (docs/reliability.md). 0:
   * as many as the process allows, `env.maxConcurrentRuns`. Default: 0. Throws TypeError; RangeError outside 0 to 2^32
   * - 1.
   */
  maxConcurrentRuns?: number;
  /**
   * A folder in which packed weights are kept, made where it is missing: later loads of the model, in any process, map
   * them instead of packing anew. Only folders that nobody else writes to should be given. Throws TypeError, also for a
   * path that begins with '~' or has a null character.
   */
  modelCacheDir?: string;
  /**
   * How an operator's method is chosen where it has several: by a model of their costs, or by the time that each takes
   * at load on the node's shapes ('measure'; nodes whose sizes are not known then follow the model). `modelCacheDir`
   * keeps what was measured. Methods round differently, so two loads that measure may differ in last bits. Default:
   * 'off'. Throws TypeError.
   */
  tuning?: 'off' | 'measure';
  /**
   * Ends the load: the promise rejects with ABORTED and the signal's reason as cause, by the name of TimeoutError where
   * time ended it (`AbortSignal.timeout`) and else of AbortError. Throws TypeError.
   */
  signal?: AbortSignal;
  /**
   * Milliseconds after which `create` gives up, fetching the model included: it rejects with ABORTED by the name of
   * TimeoutError. Runs have a `timeout` of their own. `createSync` does not look at it. 0: no limit. Default: 0. Throws
   * TypeError; RangeError outside 0 to 2147483647.
   */
  timeout?: number;
  /**
   * Hears the session's messages from `logSeverityLevel` on, in the place of stderr: `{ severity, category, message,
   * logId }`, on the thread that made the session, soon after they were said. `env.onLog` by default. It is kept until
   * the session is released or collected. Throws TypeError.
   */
  onLog?: LogListener;
  /**
   * Hears how far the load is: `phase` is 'read' while bytes of a URL, Blob, Response or stream arrive, 'prepare' when
   * the engine begins, 'optimize' when it has read the model, 'build' while kernels are made and weights packed,
   * 'ready' when the session is made; `loaded` and `total` count bytes, and nodes in 'build'. What it throws ends no
   * load: it is an uncaught exception of the program. Of `create` alone. Throws TypeError.
   */
  onProgress?: (progress: LoadProgress) => void;
}

/** Options of a session as the addon takes them, but those that are read by hand. */
export interface SimpleSessionOptions {
  intraOpNumThreads: number;
  interOpNumThreads: number;
  graphOptimizationLevel: 'disabled' | 'basic' | 'extended' | 'layout' | 'all';
  enableCpuMemArena: boolean;
  enableMemPattern: boolean;
  executionMode: 'sequential' | 'parallel';
  optimizedModelFilePath: string;
  enableProfiling: boolean;
  logId: string;
  providerFallback: boolean;
  float32MatmulPrecision: 'highest' | 'high' | 'medium';
  memoryLimit: number;
  maxConcurrentRuns: number;
  modelCacheDir: string;
  tuning: 'off' | 'measure';
}

/** Reads those. Throws TypeError and RangeError for wrong values, in the order of the schema. */
export function readSimpleSessionOptions(reader: OptionReader): SimpleSessionOptions {
  return {
    intraOpNumThreads: reader.integer('intraOpNumThreads', 0),
    interOpNumThreads: reader.integer('interOpNumThreads', 0),
    graphOptimizationLevel: reader.oneOf(
      'graphOptimizationLevel',
      ['disabled', 'basic', 'extended', 'layout', 'all'],
      'all',
    ),
    enableCpuMemArena: reader.boolean('enableCpuMemArena', true),
    enableMemPattern: reader.boolean('enableMemPattern', true),
    executionMode: reader.oneOf('executionMode', ['sequential', 'parallel'], 'sequential'),
    optimizedModelFilePath: reader.path('optimizedModelFilePath', ''),
    enableProfiling: reader.boolean('enableProfiling', false),
    logId: reader.string('logId', ''),
    providerFallback: reader.boolean('providerFallback', true),
    float32MatmulPrecision: reader.oneOf('float32MatmulPrecision', ['highest', 'high', 'medium'], 'highest'),
    memoryLimit: reader.integer('memoryLimit', 0, Number.MAX_SAFE_INTEGER),
    maxConcurrentRuns: reader.integer('maxConcurrentRuns', 0),
    modelCacheDir: reader.path('modelCacheDir', ''),
    tuning: reader.oneOf('tuning', ['off', 'measure'], 'off'),
  };
}

/** Every key that the options of a run may have. */
export const runOptionKeys: readonly string[] = [
  'logSeverityLevel',
  'logVerbosityLevel',
  'terminate',
  'tag',
  'extra',
  'signal',
  'timeout',
];

/** Options of a run that onnxruntime-common does not declare. */
export interface OwnRunOptions {
  /**
   * Ends the run within milliseconds, also within one node; the promise rejects with code ABORTED and the reason as
   * cause, by the name of TimeoutError where time ended it (`AbortSignal.timeout`) and else of AbortError. Throws
   * TypeError.
   */
  signal?: AbortSignal;
  /**
   * Milliseconds after which the run is aborted: it rejects with ABORTED by the name of TimeoutError. Also works for
   * runSync. 0: no limit. Default: 0. Throws TypeError; RangeError outside 0 to 2^32 - 1.
   */
  timeout?: number;
}

/** Options of a run as the addon takes them, but those that are read by hand. */
export interface SimpleRunOptions {
  logSeverityLevel: number;
  tag: string;
  timeout: number;
}

/** Reads those. Throws TypeError and RangeError for wrong values, in the order of the schema. */
export function readSimpleRunOptions(reader: OptionReader): SimpleRunOptions {
  return {
    logSeverityLevel: reader.integer('logSeverityLevel', -1, 4),
    tag: reader.string('tag', ''),
    timeout: reader.integer('timeout', 0),
  };
}

/** NVIDIA GPUs from compute capability 7.5 on, on Linux and Windows; needs the driver (580 or later) alone. */
export interface CudaExecutionProviderOption {
  /** Names the provider. */
  readonly name: 'cuda';
  /**
   * Bytes of the GPU's memory that the session may hold. By default all that there are. Throws TypeError for an object,
   * else InferenceError.
   */
  gpuMemLimit?: number;
  /**
   * Whether blocks of memory grow to powers of two, so that more requests fit the same ones. Default:
   * 'kSameAsRequested'. Throws TypeError for an object, else InferenceError.
   */
  arenaExtendStrategy?: 'kNextPowerOfTwo' | 'kSameAsRequested';
  /**
   * Runs of shapes that repeat are captured and replayed. Without it each run launches its kernels one by one. Default:
   * true. Throws TypeError for an object, else InferenceError.
   */
  enableCudaGraph?: boolean;
  /**
   * Writes to the log (at `info`) which kernels a repeated run launches and how long each takes alone. Slows that run
   * down. Default: false. Throws TypeError for an object, else InferenceError.
   */
  kernelTimes?: boolean;
  /**
   * float32 products round what they multiply to TF32, as with `float32MatmulPrecision: 'medium'`. Default: false.
   * Throws TypeError for an object, else InferenceError.
   */
  useTf32?: boolean;
}

/** Host memory that poses as a device: for tests of partitioning, copies and IoBinding. */
export interface NullExecutionProviderOption {
  /** Names the provider. */
  readonly name: 'null';
  /** Operators it claims; all that it can by default. Throws TypeError. */
  ops?: string | readonly string[];
  /** A reason with which it refuses to start. Throws TypeError. */
  unavailable?: string;
}

/** By provider, the options that it has. */
export const providerOptionKeys: Readonly<Record<string, readonly string[]>> = {
  cpu: ['useArena'],
  cuda: ['deviceId', 'gpuMemLimit', 'arenaExtendStrategy', 'enableCudaGraph', 'kernelTimes', 'useTf32'],
  null: ['ops', 'unavailable'],
};

/** Every setting of `env` that this package reads. */
export const envKeys: readonly string[] = ['logLevel', 'onLog', 'ownTensorData', 'maxConcurrentRuns'];

/** Options of providers that onnxruntime-common does not declare. */
export type OwnProviderOption = CudaExecutionProviderOption | NullExecutionProviderOption;
