import { rangeError, typeError } from '../errors.js';
import type { OptionReader } from '../options/option-reader.js';
import { StrictReader } from '../options/strict-reader.js';
import { describe } from '../tensor/tensor-data.js';

/** Reads the options of a picture, which `title` names. Throws TypeError for what are none. */
export function imageOptions(options: unknown, title: string): StrictReader {
  if (typeof options !== 'object' || options === null) {
    throw typeError(`'options' must be an object, got ${describe(options)}.`);
  }
  return new StrictReader(options, 'image options', title);
}

/** An option that is an object of several. */
export function group(reader: OptionReader, key: string): Readonly<Record<string, unknown>> | undefined {
  const value = reader.get(key);
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'object' || Array.isArray(value)) reader.wrong(key, 'an object', value);
  return value as Record<string, unknown>;
}

/** A number for each of red, green, blue and alpha. */
export function perChannel(reader: OptionReader, key: string, value: unknown, usual: number): number[] {
  const all = value === undefined ? usual : value;
  const each: unknown[] = Array.isArray(all) ? [...(all as unknown[]), usual].slice(0, 4) : [all, all, all, all];
  if (each.length < 4 || !each.every((number) => typeof number === 'number')) {
    reader.wrong(key, 'a number, or an array of 3 or 4', value);
  }
  const numbers = each as number[];
  const odd = numbers.find((number) => !Number.isFinite(number));
  if (odd !== undefined) throw rangeError(`Invalid image options: '${key}' must be finite, got ${odd}.`);
  return numbers;
}

/** The same of what pixels are divided by. */
export function divisors(reader: OptionReader, key: string, value: unknown, usual: number): number[] {
  const numbers = perChannel(reader, key, value, usual);
  if (numbers.includes(0)) throw rangeError(`Invalid image options: '${key}' must not be 0.`);
  return numbers;
}
