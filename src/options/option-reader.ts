import { rangeError, typeError } from '../errors.js';
import { homeOptionHint, shownPath } from '../hints.js';
import { describe } from '../tensor/tensor-data.js';
import { severities } from './log-message.js';
import { nearestValue } from './nearest-name.js';

/** What the numbers of an option stand for, where they stand for something. */
const numberHint = (key: string): string =>
  key === 'logSeverityLevel' ? ` ${severities.map((name, level) => `${level} is '${name}'`).join(', ')}.` : '';

/** Objects within objects of `extra`. */
const mostLevels = 64;

/**
 * Reads the own keys of a user's options object, each once; `what` ("session options") begins every message. What
 * stands on a prototype is nobody's option: a program may have changed Object.prototype.
 */
export class OptionReader {
  constructor(
    private readonly options: object,
    private readonly what: string,
  ) {}

  /** Whether the key has a value; undefined counts as none. */
  has(key: string): boolean {
    return this.get(key) !== undefined;
  }

  /** What is inherited does not count: a key that somebody set on Object.prototype is nobody's option. */
  get(key: string): unknown {
    return Object.hasOwn(this.options, key) ? (this.options as Record<string, unknown>)[key] : undefined;
  }

  integer(key: string, fallback: number, max = 2 ** 32 - 1, min = 0): number {
    const value = this.get(key);
    if (value === undefined) return fallback;
    if (typeof value !== 'number') this.wrong(key, 'a number', value, numberHint(key));
    if (!Number.isInteger(value) || value < min || value > max) {
      const message = `Invalid ${this.what}: '${key}' must be an integer in [${min}, ${max}], got ${value}.`;
      throw rangeError(message + numberHint(key));
    }
    return value;
  }

  boolean(key: string, fallback: boolean): boolean {
    const value = this.get(key);
    if (value === undefined) return fallback;
    if (typeof value !== 'boolean') this.wrong(key, 'a boolean', value);
    return value;
  }

  string(key: string, fallback: string): string {
    const value = this.get(key);
    if (value === undefined) return fallback;
    if (typeof value !== 'string') {
      this.wrong(key, value instanceof URL ? 'a string (fileURLToPath(url), of node:url)' : 'a string', value);
    }
    return value;
  }

  /** A path, of which Node.js expands nothing. */
  path(key: string, fallback: string): string {
    const value = this.string(key, fallback);
    const hint = value.startsWith('~') ? homeOptionHint(value) : '';
    if (hint !== '') throw typeError(`Invalid ${this.what}: '${key}' begins with '~'. ${hint}`, { actual: value });
    if (value.includes('\0'))
      throw typeError(`Invalid ${this.what}: '${key}' has a null character.`, { actual: value });
    return value;
  }

  oneOf<T extends string>(key: string, values: readonly T[], fallback: T): T {
    const value = this.get(key);
    if (value === undefined) return fallback;
    return this.among(key, values, value);
  }

  /** `value` where it is one of `values`. Throws TypeError, which lists them, for anything else. */
  among<T extends string>(key: string, values: readonly T[], value: unknown): T {
    const found = values.find((candidate) => candidate === value);
    if (found !== undefined) return found;
    const meant = typeof value === 'string' ? nearestValue(value, values) : undefined;
    this.wrong(key, `one of '${values.join("', '")}'`, value, meant && ` Did you mean '${meant}'?`);
  }

  /** An AbortSignal, or anything that behaves as one. */
  signal(): AbortSignal | undefined {
    const value = this.get('signal');
    if (value === undefined) return undefined;
    const needed = ['aborted', 'addEventListener', 'removeEventListener'];
    if (typeof value !== 'object' || value === null || !needed.every((key) => key in value)) {
      this.wrong('signal', 'an AbortSignal', value);
    }
    return value as AbortSignal;
  }

  /** A function, to be called with what the option's documentation says. */
  callback<T>(key: string): T | undefined {
    const value = this.get(key);
    if (value === undefined || value === null) return undefined;
    if (typeof value !== 'function') this.wrong(key, 'a function', value);
    return value as T;
  }

  /**
   * `extra` flattened to config entries: {session: {intra_op: {allow_spinning: '0'}}} and
   * {'session.intra_op.allow_spinning': '0'} are the same. Leaves are strings.
   */
  config(): [key: string, value: string][] {
    const entries: [string, string][] = [];
    const value = this.get('extra');
    if (value === undefined) return entries;
    if (typeof value !== 'object' || value === null) this.wrong('extra', 'an object', value);
    this.flatten('', value, [], entries);
    return entries;
  }

  /** Throws TypeError; `hint` follows its message. */
  wrong(key: string, expected: string, value: unknown, hint = ''): never {
    const actual = typeof value === 'string' ? `'${shownPath(value)}'` : describe(value);
    throw typeError(`Invalid ${this.what}: '${key}' must be ${expected}, got ${actual}.${hint}`, { expected, actual });
  }

  private flatten(prefix: string, value: object, parents: readonly object[], entries: [string, string][]): void {
    if (parents.includes(value))
      throw typeError(`Invalid ${this.what}: 'extra${prefix && `.${prefix}`}' contains itself.`);
    if (parents.length >= mostLevels)
      throw typeError(`Invalid ${this.what}: 'extra' is nested deeper than ${mostLevels} levels.`);
    for (const [name, item] of Object.entries(value) as [string, unknown][]) {
      const key = prefix === '' ? name : `${prefix}.${name}`;
      if (typeof item === 'string') entries.push([key, item]);
      else if (typeof item === 'object' && item !== null) this.flatten(key, item, [...parents, value], entries);
      else this.wrong(`extra.${key}`, 'a string', item);
    }
  }
}
