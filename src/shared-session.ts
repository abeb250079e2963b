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
  readonly kind: 'infernode.session';
  readonly id: string;
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
    const isSession = typeof handle === 'object' && handle !== null && 'share' in handle;
    const got = isSession ? 'a session: call share() on it' : describe(handle);
    throw typeError(`A shared session is opened by what session.share() gave, got ${got}.`);
  }
  const native = callNative(() => loadNative().openSharedSession(handle.id));
  return new NativeSessionHandler(native, handle.preferredOutputLocation);
}

function isHandle(value: unknown): value is SharedSession {
  if (typeof value !== 'object' || value === null) return false;
  const { kind, id, preferredOutputLocation: place } = value as Partial<Record<keyof SharedSession, unknown>>;
  return kind === 'infernode.session' && typeof id === 'string' && isPlace(place);
}

function isPlace(value: unknown): boolean {
  return types.isMap(value) ? [...value.values()].every(isOutputLocation) : isOutputLocation(value);
}
