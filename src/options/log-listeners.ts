import { env } from 'onnxruntime-common';

import { typeError } from '../errors.js';
import { loadNative } from '../load-native.js';
import { describe } from '../tensor/tensor-data.js';
import type { LogListener } from './log-message.js';

const severities = ['verbose', 'info', 'warning', 'error', 'fatal'] as const;
const listeners = new Map<number, { listener: LogListener; logId: string }>();
let lastKey = 0;
const forgotten = new FinalizationRegistry<number>((key) => listeners.delete(key));

/** The listener of a session without one of its own: `env.onLog`. Throws TypeError where it is no function. */
export function processListener(): LogListener | undefined {
  const value = (env as unknown as Record<string, unknown>)['onLog'];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'function') throw typeError(`env.onLog must be a function, got ${describe(value)}.`);
  return value as LogListener;
}

/** A number by which the addon names a listener; 0 where there is none: then messages go to stderr. */
export function listen(listener: LogListener | undefined, logId: string): number {
  if (listener === undefined) return 0;
  if (listeners.size === 0) loadNative().setLog(hear);
  listeners.set(++lastKey, { listener, logId });
  return lastKey;
}

/** Forgets a listener now, or when `session` is gone. */
export function forget(key: number, session?: object): void {
  if (session === undefined) listeners.delete(key);
  else if (key !== 0) forgotten.register(session, key);
}

/** Has listeners hear at once what calls on this thread have said. */
export function flushLog(): void {
  if (listeners.size > 0) loadNative().flushLog();
}

function hear(key: number, severity: number, category: string, message: string): void {
  const found = listeners.get(key);
  if (found === undefined) return;
  try {
    found.listener({ severity: severities[severity] ?? 'fatal', category, message, logId: found.logId });
  } catch (error) {
    queueMicrotask(() => {
      throw error; // the listener's own fault, not the run's
    });
  }
}
