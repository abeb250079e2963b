import { nearestOption } from './nearest-name.js';

const warned = new Set<string>();

/**
 * Warns once per process about a key that is not known but close to one that is ('intraOpNumThread'). Other unknown
 * keys are fine: clients pass one object to several libraries.
 */
export function warnMisspelt(
  keys: readonly string[],
  known: readonly string[],
  alsoKnown: readonly string[],
  what: string,
): void {
  for (const key of keys) {
    if (known.includes(key) || alsoKnown.includes(key)) continue;
    const nearest = nearestOption(key, known);
    if (nearest === undefined) continue;
    warnOnce(key, `${what} has no key '${key}', which is ignored. Did you mean '${nearest}'?`);
  }
}

/** Warns of a name that is ignored, once per process and name. */
export function warnOnce(name: string, message: string): void {
  if (warned.has(name)) return;
  warned.add(name);
  process.emitWarning(message, { type: 'InfernodeWarning', code: 'INFERNODE_UNKNOWN_OPTION' });
}
