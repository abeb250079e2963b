import { listed, nameHint } from '../hints.js';

/** About feeds under names that no input has; undefined where there are none. One that is undefined is none. */
export function strayFeeds(feeds: Readonly<Record<string, unknown>>, inputs: readonly string[]): string | undefined {
  const strays = Object.keys(feeds).filter((name) => !inputs.includes(name) && feeds[name] !== undefined);
  const [first] = strays;
  if (first === undefined) return undefined;
  if (strays.length === 1) {
    return `'feeds' has ${listed(strays)}, which is no input and ignored.${nameHint(first, inputs, "model's inputs")}`;
  }
  return `'feeds' has ${listed(strays)}, which are no inputs and ignored. The model's inputs are ${listed(inputs)}.`;
}
