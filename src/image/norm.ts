import { typeError } from '../errors.js';
import type { OptionReader } from '../options/option-reader.js';
import { StrictReader } from '../options/strict-reader.js';
import { divisors, group, perChannel } from './image-options.js';

/** How pixels become values, by red, green, blue and alpha: value = pixel * factor + shift = (pixel + bias) / mean. */
export interface Norm {
  factors: readonly number[];
  shifts: readonly number[];
  means: readonly number[];
  biases: readonly number[];
}

/** Reads `norm` or `normalize`; `usual` is the mean without them. Throws TypeError for both, and what numbers throw. */
export function readNorm(reader: OptionReader, usual: number): Norm {
  const normalize = group(reader, 'normalize');
  const norm = group(reader, 'norm');
  if (normalize === undefined) return scaled(reader, norm ?? {}, usual);
  if (norm !== undefined) throw typeError("Invalid image options: 'norm' and 'normalize' exclude each other.");
  const given = new StrictReader(normalize, 'image options', 'normalize');
  const std = divisors(reader, 'normalize.std', given.get('std'), 1);
  const mean = perChannel(reader, 'normalize.mean', given.get('mean'), 0);
  given.close();
  return {
    factors: std.map((each) => 1 / (255 * each)),
    shifts: mean.map((each, i) => -each / (std[i] as number)),
    means: std.map((each) => 255 * each),
    biases: mean.map((each) => -255 * each),
  };
}

function scaled(reader: OptionReader, norm: object, usual: number): Norm {
  const given = new StrictReader(norm, 'image options', 'norm');
  const means = divisors(reader, 'norm.mean', given.get('mean'), usual);
  const biases = perChannel(reader, 'norm.bias', given.get('bias'), 0);
  given.close();
  return {
    factors: means.map((each) => 1 / each),
    shifts: biases.map((each, i) => each / (means[i] as number)),
    means,
    biases,
  };
}
