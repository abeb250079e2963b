import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, extname, join } from 'node:path';

import type { CalibrationFeeds } from '../quantization.js';
import type { Tensor } from '../index.js';
import { readNpy, readNpz } from './npy.js';
import { UsageError } from './command.js';
import { readTensorFile } from './tensor-file.js';

/** In the order of the numbers in their names. */
const sorted = (names: readonly string[]): string[] =>
  [...names].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));

/** The feeds of a folder: NAME.npy each, or input_N.pb of the N-th input. */
function feedsOfFolder(folder: string, inputs: readonly string[]): CalibrationFeeds | undefined {
  const names = sorted(readdirSync(folder));
  const feeds: Record<string, Tensor> = {};
  for (const name of names.filter((each) => extname(each) === '.npy')) {
    feeds[basename(name, '.npy')] = readNpy(readFileSync(join(folder, name)), join(folder, name));
  }
  for (const name of names.filter((each) => /^input_\d+\.pb$/.test(each))) {
    const [own, tensor] = readTensorFile(readFileSync(join(folder, name)), join(folder, name));
    const input = own || inputs[Number(/\d+/.exec(name))];
    if (input === undefined)
      throw new Error(`${join(folder, name)} has no name, and the model has no input of this number`);
    feeds[input] = tensor;
  }
  return Object.keys(feeds).length > 0 ? feeds : undefined;
}

/**
 * The feeds of a folder, run by run: of each folder in it that holds NAME.npy or input_N.pb (as ONNX's test data), of each
 * .npz, and of each .npy, which is the only input's.
 */
export function* readCalibrationData(path: string, inputs: readonly string[]): Generator<CalibrationFeeds> {
  let count = 0;
  for (const name of sorted(readdirSync(path))) {
    const file = join(path, name);
    let feeds: CalibrationFeeds | undefined;
    if (statSync(file).isDirectory()) feeds = feedsOfFolder(file, inputs);
    else if (extname(name) === '.npz') feeds = readNpz(readFileSync(file), file);
    else if (extname(name) === '.npy') {
      const [only, ...more] = inputs;
      if (only === undefined || more.length > 0) {
        throw new Error(
          `${file} is one tensor, and the model has ${inputs.length} inputs: give .npz files, or folders`,
        );
      }
      feeds = { [only]: readNpy(readFileSync(file), file) };
    }
    if (feeds === undefined) continue;
    count++;
    yield feeds;
  }
  if (count === 0) throw new Error(`${path} holds no .npy or .npz files and no folders with them, or with input_0.pb`);
}

export function checkFolder(path: string): void {
  if (!existsSync(path) || !statSync(path).isDirectory()) {
    throw new UsageError(`--calibration-data takes a folder, and there is none of the name ${path}`);
  }
}
