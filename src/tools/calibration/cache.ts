import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';

import { InferenceError } from '../../index.js';
import type { Ranges } from './calibrate.js';

interface Entry {
  readonly lowest: unknown;
  readonly highest: unknown;
}

/** A number that the Python tool may have written as an array of one. */
function numberOf(value: unknown): number {
  const inner =
    typeof value === 'object' && value !== null && 'data' in value ? (value as { data: unknown }).data : value;
  return Number(([inner] as unknown[]).flat(8)[0] ?? NaN);
}

/** Python writes numbers that JSON does not have: none is an end of a range. */
const withoutNumbersOfPython = (text: string): string =>
  text.replace(/([:[,]\s*)(?:NaN|-?Infinity)(?=\s*[,\]}])/g, '$1null');

/** The ranges of a file that this or the Python tool wrote; undefined where there is no such file. */
export function readRanges(path: string, method: string): Ranges | undefined {
  if (!existsSync(path)) return undefined;
  const fail = (why: string): never => {
    throw new InferenceError('INVALID_ARGUMENT', `the calibration cache ${path} ${why}`, { path });
  };
  let found: { data?: Record<string, Entry>; calibration_method?: { value?: string } };
  try {
    found = JSON.parse(withoutNumbersOfPython(readFileSync(path, 'utf8'))) as typeof found;
  } catch (error) {
    return fail(`cannot be read: ${(error as Error).message}`);
  }
  const { data, calibration_method: by } = found ?? {};
  if (typeof data !== 'object' || data === null) return fail('holds no ranges');
  const made = String(by?.value).replace('CalibrationMethod.', '');
  if (made !== method) fail(`has ranges that ${made} found, not ${method}: name another file, or delete it`);
  const ranges: Ranges = new Map();
  for (const [name, entry] of Object.entries(data)) {
    const [lowest, highest] = [numberOf(entry?.lowest), numberOf(entry?.highest)];
    if (!(Number.isFinite(lowest) && Number.isFinite(highest) && lowest <= highest)) fail(`has no range for '${name}'`);
    ranges.set(name, [lowest, highest]);
  }
  return ranges;
}

/** Writes a file that the Python tool reads, too: all or nothing. */
export function writeRanges(path: string, method: string, ranges: Ranges): void {
  const data = Object.fromEntries(
    [...ranges].map(([name, [lowest, highest]]) => [name, { lowest, highest, CLS: 'TensorData' }]),
  );
  const text = JSON.stringify({
    CLS: 'TensorsData',
    data,
    calibration_method: { CLS: 'CalibrationMethod', value: `CalibrationMethod.${method}` },
    smooth_quant: false,
  });
  const beside = `${path}.${process.pid}.part`;
  try {
    writeFileSync(beside, text);
    renameSync(beside, path);
  } catch (error) {
    rmSync(beside, { force: true });
    throw new InferenceError('IO', `the calibration cache ${path} cannot be written: ${(error as Error).message}`, {
      path,
    });
  }
}
