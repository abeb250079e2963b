import { hearBy, processLevel, processListener, say, type Hear } from './log-listeners.js';
import type { LogListener } from './log-message.js';
import { nearestOption } from './nearest-name.js';

/** Where a warning goes: what a session's listener is called by, and the least severity that is said. */
export interface WarningLog {
  hear?: Hear | undefined;
  level?: number | undefined;
}

/** The log that session options ask for, whatever they hold. */
export function logOf(options: { onLog?: unknown; logId?: unknown; logSeverityLevel?: unknown }): WarningLog {
  const { onLog, logId, logSeverityLevel } = options;
  return {
    hear: typeof onLog === 'function' ? hearBy(onLog as LogListener, String(logId ?? '')) : undefined,
    level: typeof logSeverityLevel === 'number' ? logSeverityLevel : undefined,
  };
}

const warning = 2;
/** By who heard of them. */
const warned = new WeakMap<object, Set<string>>();

/**
 * Warns once about a key that is not known but close to one that is ('intraOpNumThread'). Other unknown keys are fine:
 * clients pass one object to several libraries.
 */
export function warnMisspelt(
  keys: readonly string[],
  known: readonly string[],
  alsoKnown: readonly string[],
  what: string,
  log?: WarningLog,
): void {
  for (const key of keys) {
    if (known.includes(key) || alsoKnown.includes(key)) continue;
    const nearest = nearestOption(key, known);
    if (nearest === undefined) continue;
    warnOnce(key, `${what} has no key '${key}', which is ignored. Did you mean '${nearest}'?`, log);
  }
}

/**
 * Warns of a name that is ignored, each listener once: that of `log`, else `env.onLog`, else Node.js's warnings. Not
 * where the log's level, by default `env.logLevel`, asks for errors alone.
 */
export function warnOnce(name: string, message: string, log: WarningLog = {}): void {
  if ((log.level ?? processLevel()) > warning) return;
  const listener = processListener();
  const listeners = log.hear ?? listener ?? process;
  const names = warned.get(listeners) ?? new Set();
  if (names.has(name)) return;
  warned.set(listeners, names.add(name));
  warn(message, 'options', 'INFERNODE_UNKNOWN_OPTION', log);
}

/** Warns: the listener of `log`, else `env.onLog`, else by one of Node.js's warnings, which has the `code`. */
export function warn(message: string, category: string, code: string, log: WarningLog = {}): void {
  if ((log.level ?? processLevel()) > warning) return;
  const listener = processListener();
  const hear = log.hear ?? (listener && hearBy(listener, ''));
  if (hear !== undefined) say(hear, warning, category, message);
  else process.emitWarning(message, { type: 'InfernodeWarning', code });
}
