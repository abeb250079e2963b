import { pathOfFileUrl } from './file-url.js';
import { isTypedArray } from './tensor/tensor-data.js';

/** What a model can be read from, beside a path and bytes. */
export type ModelStream = URL | Blob | Response | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

/** A path where `model` is a URL of one, in text or not; otherwise `model`. Throws TypeError for one of another host. */
export function pathOfUrl(model: unknown): unknown {
  if (typeof model === 'string') return model.slice(0, 7).toLowerCase() === 'file://' ? pathOfFileUrl(model) : model;
  return model instanceof URL && model.protocol === 'file:' ? pathOfFileUrl(model) : model;
}

/** Whether the model can be read from it. */
export function isModelStream(model: unknown): model is ModelStream {
  if (typeof model !== 'object' || model === null || isTypedArray(model)) return false;
  return model instanceof URL || isBlob(model) || isResponse(model) || isReadable(model);
}

const has = (value: object, key: string): boolean => typeof (value as Record<string, unknown>)[key] === 'function';
/** Whether it is a Blob, of whatever realm. */
export const isBlob = (value: object): value is Blob =>
  has(value, 'stream') && has(value, 'arrayBuffer') && 'size' in value;
/** Whether it is a Response, of whatever realm. */
export const isResponse = (value: object): value is Response =>
  'body' in value && 'ok' in value && 'headers' in value && has(value, 'arrayBuffer');
const isReadable = (value: object): boolean => Symbol.asyncIterator in value;
