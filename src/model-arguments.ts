import { types } from 'node:util';

import { rangeError, typeError } from './errors.js';
import { modelHint } from './hints.js';
import { loadNative } from './load-native.js';
import { isModelStream, pathOfUrl, type ModelStream } from './model-source.js';
import { bytesOf, typedArrayName } from './tensor/tensor-data.js';
import type { SessionOptions } from './options/session-options.js';

/**
 * Reads the arguments of `InferenceSession.create`: a path or its URL, bytes in a Uint8Array or (shared) ArrayBuffer of
 * any realm, the latter with an optional range, or what they can be read from. Throws what onnxruntime-node throws.
 */
export function parseModelArguments(args: readonly unknown[]): {
  source: string | Uint8Array | ModelStream;
  options: SessionOptions;
} {
  const [given, arg1, arg2, arg3] = args;
  const model = pathOfUrl(given);
  if (typeof model === 'string') return { source: model, options: optionsOf(arg1) };
  if (typedArrayName(model) === 'Uint8Array') {
    const source = bytesOf(model);
    if (source.length === 0) wholeOf((model as Uint8Array).buffer); // throws where it is detached
    return { source, options: optionsOf(arg1) };
  }
  if (isModelStream(model)) return { source: model, options: optionsOf(arg1) };
  if (!types.isAnyArrayBuffer(model)) {
    throw typeError(`Unexpected argument[0]: must be 'path' or 'buffer'.${modelHint(model)}`);
  }
  if (typeof arg1 !== 'number') return { source: wholeOf(model), options: optionsOf(arg1) };

  const byteOffset = arg1;
  if (!Number.isSafeInteger(byteOffset)) throw rangeError("'byteOffset' must be an integer.");
  if (byteOffset < 0 || byteOffset >= model.byteLength) {
    throw rangeError(`'byteOffset' is out of range [0, ${model.byteLength}).`);
  }
  const rest = model.byteLength - byteOffset;
  if (arg2 === undefined) return { source: new Uint8Array(model, byteOffset), options: optionsOf(arg3) };
  if (typeof arg2 !== 'number') throw typeError("'byteLength' must be a number.");
  if (!Number.isSafeInteger(arg2)) throw rangeError("'byteLength' must be an integer.");
  if (arg2 <= 0 || arg2 > rest) throw rangeError(`'byteLength' is out of range (0, ${rest}].`);
  return { source: new Uint8Array(model, byteOffset, arg2), options: optionsOf(arg3) };
}

/** The same for `createSync`, which reads no streams. */
export function parseModelArgumentsSync(args: readonly unknown[]): {
  source: string | Uint8Array;
  options: SessionOptions;
} {
  const { source, options } = parseModelArguments(args);
  if (isModelStream(source)) {
    throw typeError("Unexpected argument[0]: must be 'path' or 'buffer'. Only 'create' reads URLs, Blobs and streams.");
  }
  return { source, options };
}

/** The memory of bytes that nobody else has. */
const owned = new WeakSet<ArrayBufferLike>();

/** Notes that nobody else has the memory of `bytes`, so that a load needs no copy and gives it back. */
export function ownBytes<T extends Uint8Array>(bytes: T): T {
  owned.add(bytes.buffer);
  return bytes;
}

/** Frees what ownBytes noted or withOwnBytes made, once the engine has its own; leaves what a caller gave. */
export function giveBack(bytes: unknown): void {
  if (!types.isUint8Array(bytes) || !owned.delete(bytes.buffer)) return;
  if (types.isArrayBuffer(bytes.buffer)) loadNative().detach(bytes.buffer);
}

function copyOf<T extends ArrayBufferLike | NodeJS.TypedArray>(bytes: T): T {
  // A Buffer's own slice() is a view.
  const copy = types.isUint8Array(bytes) ? new Uint8Array(bytes) : bytes.slice(0);
  owned.add(ArrayBuffer.isView(copy) ? copy.buffer : copy);
  return copy as T;
}

/** The same with copies of all bytes, for a load that comes to them when the caller may have changed its own. */
export function withOwnBytes(
  source: string | Uint8Array,
  options: SessionOptions,
): { source: string | Uint8Array; options: SessionOptions } {
  const { externalData } = options;
  return {
    source: typeof source === 'string' || owned.has(source.buffer) ? source : copyOf(source),
    options: Array.isArray(externalData) ? { ...options, externalData: externalData.map(withOwnData) } : options,
  };
}

function withOwnData<T>(entry: T): T {
  if (typeof entry !== 'object' || entry === null || !('data' in entry)) return entry;
  const { data } = entry;
  if (!types.isAnyArrayBuffer(data) && !types.isTypedArray(data)) return entry;
  try {
    return { ...entry, data: copyOf(data) };
  } catch {
    return entry; // it is detached, which the load says
  }
}

function wholeOf(buffer: ArrayBufferLike): Uint8Array {
  try {
    return new Uint8Array(buffer);
  } catch {
    throw typeError("Unexpected argument[0]: the 'buffer' is detached: its bytes were transferred elsewhere.");
  }
}

function optionsOf(value: unknown): SessionOptions {
  if (value === undefined) return {};
  if (typeof value !== 'object' || value === null) throw typeError("'options' must be an object.");
  if (Array.isArray(value)) throw typeError("'options' must be an object, got Array.");
  return Object.assign(Object.create(null) as object, value); // what is inherited does not count
}
