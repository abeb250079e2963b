/** What went wrong, in a form that programs can test. Stable across versions. */
export type ErrorCode =
  | 'INVALID_MODEL'
  | 'UNSUPPORTED_OPERATOR'
  | 'INVALID_ARGUMENT'
  | 'SHAPE_MISMATCH'
  | 'PROVIDER_UNAVAILABLE'
  | 'NO_BINARY'
  | 'QUEUE_FULL'
  | 'ABORTED'
  | 'DISPOSED'
  | 'OUT_OF_MEMORY'
  | 'IO'
  | 'INTERNAL';

/** Where an error applies; a field that does not apply is absent. */
export interface ErrorFields {
  /** Name of the model input. */
  readonly input?: string;
  /** Name of the model output. */
  readonly output?: string;
  /** Name of the node. */
  readonly node?: string;
  /** Its operator. */
  readonly opType?: string;
  /** What would have been right. */
  readonly expected?: string;
  /** What came. */
  readonly actual?: string;
  /** The file. */
  readonly path?: string;
  /** Every cause, where one error reports several: ten unsupported operators are ten entries. */
  readonly details?: readonly string[];
}

/**
 * Thrown for everything but wrong arguments, which are TypeError or RangeError with the same `code` and fields. Its
 * `name` is 'Error', as clients of onnxruntime-node expect, but where something was aborted: 'TimeoutError' by the option
 * `timeout` or by a signal that ends by time (`AbortSignal.timeout`), 'AbortError' by all else. Test `code` or
 * `instanceof`.
 */
export class InferenceError extends Error implements ErrorFields {
  /** What went wrong. */
  readonly code: ErrorCode;
  /** Name of the model input that is wrong; undefined, as all fields below, where it does not apply. */
  declare readonly input?: string;
  /** Name of the model output that is wrong. */
  declare readonly output?: string;
  /** Name of the node that failed. */
  declare readonly node?: string;
  /** The operator of that node, or the one that there is no kernel for. */
  declare readonly opType?: string;
  /** What would have been right, as text: a type, a shape, a range. */
  declare readonly expected?: string;
  /** What came in its place, as text. */
  declare readonly actual?: string;
  /** The file that it is about. */
  declare readonly path?: string;
  /** Every cause, where one error reports several: ten unsupported operators are ten entries. */
  declare readonly details?: readonly string[];

  /**
   * The package makes these errors; a program makes one to test how it handles it. `timedOut`: the run's time was up,
   * so that an ABORTED error is named 'TimeoutError'; otherwise its `cause` tells.
   */
  constructor(
    code: ErrorCode,
    message: string,
    fields?: ErrorFields,
    options?: { cause?: unknown; timedOut?: boolean },
  ) {
    super(message, options);
    this.code = code;
    if (code === 'ABORTED') Object.defineProperty(this, 'name', { value: nameOfAbort(options), configurable: true });
    assignFields(this, fields);
  }
}

/** What `fetch` names its errors by: whether time was what ended it. */
function nameOfAbort(options: { cause?: unknown; timedOut?: boolean } = {}): 'TimeoutError' | 'AbortError' {
  const { cause, timedOut = cause instanceof Error && cause.name === 'TimeoutError' } = options;
  return timedOut ? 'TimeoutError' : 'AbortError';
}

/** A wrong argument: TypeError with `code` INVALID_ARGUMENT unless another applies. */
export function typeError(message: string, fields?: ErrorFields, code: ErrorCode = 'INVALID_ARGUMENT'): TypeError {
  return assignFields(Object.assign(new TypeError(message), { code }), fields);
}

/** An argument out of its range: RangeError with `code` INVALID_ARGUMENT unless another applies. */
export function rangeError(message: string, fields?: ErrorFields, code: ErrorCode = 'INVALID_ARGUMENT'): RangeError {
  return assignFields(Object.assign(new RangeError(message), { code }), fields);
}

/** The plain object in which the addon reports an error. */
export interface NativeError extends ErrorFields {
  readonly code: ErrorCode;
  readonly message: string;
}

/** Whether the addon reported `error`. */
export function isNativeError(error: unknown): error is NativeError {
  return typeof error === 'object' && error !== null && !(error instanceof Error) && 'code' in error;
}

/**
 * Makes the error that the user sees of one that the addon reported; others pass through. Call it in the user's async
 * call chain (not in the addon's callback), so that the stack names the user's code.
 */
export function fromNative(error: unknown, options?: { cause?: unknown; timedOut?: boolean }): unknown {
  if (!isNativeError(error)) return error;
  return new InferenceError(error.code, error.message, error, options);
}

/** Calls the addon, whose errors become those that the user sees. */
export function callNative<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw fromNative(error);
  }
}

const fieldNames = ['input', 'output', 'node', 'opType', 'expected', 'actual', 'path', 'details'] as const;

function assignFields<E extends Error>(error: E, fields: ErrorFields | undefined): E {
  if (fields === undefined) return error;
  for (const name of fieldNames) {
    const value = fields[name];
    if (value !== undefined) Object.defineProperty(error, name, { value, enumerable: true, configurable: true });
  }
  return error;
}

/** Throws what a listener threw where nothing of this package runs: it is the program's own, and ends no call. */
export function throwApart(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}
