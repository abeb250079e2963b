import { listed } from '../hints.js';
import { nearestOption } from './nearest-name.js';
import { warnOnce } from './option-names.js';
import { OptionReader } from './option-reader.js';

/**
 * Reads options that this package alone has, so that every key it does not know is a mistake. `title` is their type's
 * name.
 */
export class StrictReader extends OptionReader {
  readonly #keys: readonly string[];
  readonly #asked = new Set<string>();

  constructor(
    options: object,
    what: string,
    private readonly title: string,
  ) {
    super(options, what);
    this.#keys = Object.keys(options);
  }

  override get(key: string): unknown {
    this.#asked.add(key);
    return super.get(key);
  }

  /** Warns of keys that nobody has asked for, once all others were read. */
  close(): void {
    const known = [...this.#asked];
    for (const key of this.#keys.filter((name) => !this.#asked.has(name))) {
      const nearest = nearestOption(key, known);
      const hint = nearest === undefined ? `The keys are ${listed(known)}.` : `Did you mean '${nearest}'?`;
      warnOnce(`${this.title}.${key}`, `${this.title} has no key '${key}', which is ignored. ${hint}`);
    }
  }
}
