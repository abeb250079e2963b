import { env } from 'onnxruntime-common';

import { throwApart, typeError } from '../errors.js';
import { loadNative } from '../load-native.js';
import { describe } from '../tensor/tensor-data.js';
import { severities, type LogListener } from './log-message.js';

/** Calls a listener. */
export type Hear = (severity: number, category: string, message: string) => void;
const listeners = new Map<number, Hear>();
let lastKey = 0;
const forgotten = new FinalizationRegistry<number>((key) => listeners.delete(key));

/** The listener of a session without one of its own: `env.onLog`. Throws TypeError where it is no function. */
export function processListener(): LogListener | undefined {
  const value: unknown = Object.hasOwn(env, 'onLog') ? env.onLog : undefined;
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'function') throw typeError(`env.onLog must be a function, got ${describe(value)}.`);
  return value as LogListener;
}

/** The least severity that `env.logLevel` lets through, as `logSeverityLevel` counts. */
export function processLevel(): number {
  return severities.indexOf(env.logLevel ?? 'warning');
}

/** What calls `listener` with the messages of the session `logId`. */
export function hearBy(listener: LogListener, logId: string): Hear {
  return (severity, category, message) => {
    listener({ severity: severities[severity] ?? 'fatal', category, message, logId });
  };
}

/** Calls a listener. What it throws is an uncaught exception of its own. */
export function say(to: Hear | undefined, severity: number, category: string, message: string): void {
  try {
    to?.(severity, category, message);
  } catch (error) {
    throwApart(error);
  }
}

/** What calls the listener of a key; undefined where that has none. */
export function listenerOf(key: number): Hear | undefined {
  return listeners.get(key);
}

/** A number by which the addon names a listener; 0 where there is none: then messages go to stderr. */
export function listen(listener: LogListener | undefined, logId: string): number {
  if (listener === undefined) return 0;
  return listenTo(hearBy(listener, logId));
}

/** The same of a load's progress: its phase, and how much of how much is done. */
export function listenToProgress(listener: ((phase: string, done: number, total: number) => void) | undefined): number {
  if (listener === undefined) return 0;
  return listenTo((_, phase, message) => {
    const [done, total] = message.split(' ', 2).map(Number) as [number, number];
    listener(phase, done, total);
  });
}

function listenTo(hearIt: Hear): number {
  if (listeners.size === 0) loadNative().setLog(hear);
  listeners.set(++lastKey, hearIt);
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
  say(listeners.get(key), severity, category, message);
}
