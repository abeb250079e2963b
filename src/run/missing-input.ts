import { types } from 'node:util';

import { InferenceError } from '../errors.js';
import { listed } from '../hints.js';
import { nearestName } from '../options/nearest-name.js';
import { feedOf } from './feeds.js';

/** About the first input that has no value: it is named in the error, and so are the others. */
export function missingInput(
  name: string,
  feeds: Readonly<Record<string, unknown>>,
  known: readonly string[],
): InferenceError {
  if (types.isMap(feeds)) {
    const message = `input '${name}' is missing in 'feeds', which is a Map: give Object.fromEntries(feeds).`;
    return new InferenceError('INVALID_ARGUMENT', message, { input: name });
  }
  const strays = Object.keys(feeds).filter((key) => !known.includes(key));
  const nearest = nearestName(name, strays);
  const others = known.filter((other) => other !== name && feedOf(feeds, other) === undefined);
  const also = others.length > 0 ? ` So ${others.length > 1 ? 'are' : 'is'} ${listed(others)}.` : '';
  const hint =
    nearest !== undefined
      ? ` Was it meant by '${nearest}'?`
      : strays.length > 0
        ? ` 'feeds' has ${listed(strays)}, the model's inputs are ${listed(known)}.`
        : '';
  return new InferenceError('INVALID_ARGUMENT', `input '${name}' is missing in 'feeds'.${also}${hint}`, {
    input: name,
  });
}
