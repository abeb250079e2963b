import { types } from 'node:util';

import { nearestName } from './option-names.js';

// What to do about it, as a sentence that follows an error's message: empty where there is nothing to say.

/** About a name that is not among those there are: the nearest of them, or else all. `what` names them ("outputs"). */
export function nameHint(name: string, known: readonly string[], what: string): string {
  const nearest = nearestName(name, known);
  if (nearest !== undefined) return ` Did you mean '${nearest}'?`;
  return known.length === 0 ? '' : ` The ${what} are ${listed(known)}.`;
}

/** About what was given for a model and is neither a path nor bytes. */
export function modelHint(value: unknown): string {
  if (typeof value !== 'object' || value === null) return '';
  if (value instanceof URL) {
    return value.protocol === 'file:'
      ? ' It is a URL: give fileURLToPath(url), of node:url.'
      : ' It is a URL: fetch it and give its bytes.';
  }
  if (types.isPromise(value)) return ' It is a Promise: await it first.';
  if (typeof (value as { arrayBuffer?: unknown }).arrayBuffer === 'function') {
    return ' Give its bytes: await value.arrayBuffer().';
  }
  return '';
}

/** About a path that could not be opened. */
export function pathHint(path: string): string {
  if (/^file:/i.test(path)) return ' It is a URL: give fileURLToPath(url), of node:url.';
  if (/^https?:/i.test(path)) return ' It is a URL: fetch it and give its bytes.';
  if (/^~[/\\]/.test(path)) return ' The shell expands ~, Node.js does not: give os.homedir() and the rest.';
  return '';
}

/** Names in quotes: the first twenty, and how many follow. */
export function listed(names: readonly string[]): string {
  const most = 20;
  const shown = names
    .slice(0, most)
    .map((name) => `'${name}'`)
    .join(', ');
  return names.length > most ? `${shown} and ${names.length - most} more` : shown;
}
