import { typeError } from '../errors.js';
import type { OptionReader } from '../options/option-reader.js';
import { StrictReader } from '../options/strict-reader.js';

/** How pixels become values, by red, green, blue and alpha: value = pixel * factor + shift = (pixel + bias) / mean. */
export interface Norm {
  factors: readonly number[];
  shifts: readonly number[];
  means: readonly number[];
  biases: readonly number[];
}

/** Reads `norm` or `normalize`; `usual` is the mean without them. Throws TypeError for both, and for no numbers. */
export function readNorm(reader: OptionReader, usual: number): Norm {
  const normalize = pair(reader, 'normalize');
  const norm = pair(reader, 'norm');
  if (normalize !== undefined) {
    if (norm !== undefined) throw typeError("Invalid image options: 'norm' and 'normalize' exclude each other.");
    const std = perChannel(normalize, 'std', 1);
    const mean = perChannel(normalize, 'mean', 0);
    normalize.close();
    return {
      factors: std.map((each) => 1 / (255 * each)),
      shifts: mean.map((each, i) => -each / (std[i] as number)),
      means: std.map((each) => 255 * each),
      biases: mean.map((each) => -255 * each),
    };
  }
  const means = perChannel(norm, 'mean', usual);
  const biases = perChannel(norm, 'bias', 0);
  norm?.close();
  return {
    factors: means.map((each) => 1 / each),
    shifts: biases.map((each, i) => each / (means[i] as number)),
    means,
    biases,
  };
}

function pair(reader: OptionReader, key: string): StrictReader | undefined {
  const value = reader.get(key);
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'object') reader.wrong(key, 'an object', value);
  return new StrictReader(value, `image options' ${key}`, key);
}

function perChannel(reader: OptionReader | undefined, key: string, usual: number): number[] {
  const value = reader?.get(key);
  if (reader === undefined || value === undefined) return [usual, usual, usual, usual];
  if (typeof value === 'number') return [value, value, value, value];
  if (!Array.isArray(value) || value.length < 3 || !value.every((each) => typeof each === 'number')) {
    reader.wrong(key, 'a number, or an array of 3 or 4', value);
  }
  return [...(value as number[]), usual].slice(0, 4);
}
