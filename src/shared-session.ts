import { types } from 'node:util';

import { callNative, typeError } from './errors.js';
import { loadNative } from './load-native.js';
import { isOutputLocation, type ParsedSessionOptions } from './options/session-options.js';
import { NativeSessionHandler } from './session-handler.js';
import { describe } from './tensor/tensor-data.js';

/**
 * Names a session for other threads of this process: plain data, for `postMessage`, `workerData` or
 * `setEnvironmentData`. It holds nothing: the session lives as long as one of those who opened it has not released it.
 */
export interface SharedSession {
  /** Tells it from other messages. */
  readonly kind: 'infernode.session';
  /** A secret of the process: who has it can open the session. */
  readonly id: string;
  /** Where outputs go, as the option of the session says; those who open it get them there, too. */
  readonly preferredOutputLocation: ParsedSessionOptions['preferredOutputLocation'];
}

/** The handle of a session. Throws DISPOSED after `dispose`. */
export function shareSession(handler: NativeSessionHandler): SharedSession {
  const id = callNative(() => handler.native.share());
  return { kind: 'infernode.session', id, preferredOutputLocation: handler.preferredOutputLocation };
}

/** The session of a handle, for this thread. Throws TypeError for what is no handle, INVALID_ARGUMENT, DISPOSED. */
export function openSharedSession(handle: unknown): NativeSessionHandler {
  if (!isHandle(handle)) {
    throw typeError(`A shared session is opened by what session.share() gave, got ${whatElse(handle)}.`);
  }
  const native = callNative(() => loadNative().openSharedSession(handle.id));
  return new NativeSessionHandler(native, handle.preferredOutputLocation);
}

function whatElse(value: unknown): string {
  if (typeof value !== 'object' || value === null) return describe(value);
  if ('share' in value) return 'a session: call share() on it';
  return 'handler' in value ? 'what postMessage makes of a session: send session.share()' : describe(value);
}

function isHandle(value: unknown): value is SharedSession {
  if (typeof value !== 'object' || value === null) return false;
  const { kind, id, preferredOutputLocation: place } = value as Partial<Record<keyof SharedSession, unknown>>;
  return kind === 'infernode.session' && typeof id === 'string' && isPlace(place);
}

function isPlace(value: unknown): boolean {
  return types.isMap(value) ? [...value.values()].every(isOutputLocation) : isOutputLocation(value);
}
