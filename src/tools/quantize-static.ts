import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { throwApart, typeError } from '../errors.js';
import { InferenceError, InferenceSession } from '../index.js';
import { describe } from '../tensor/tensor-data.js';
import { readRanges, writeRanges } from './calibration/cache.js';
import { calibrate, checkCalibrationData, type Calibration, type CalibrationData, type Ranges } from './calibration/calibrate.js'; // prettier-ignore
import { HistogramObserver } from './calibration/histogram.js';
import { MinMax } from './calibration/observer.js';
import { entropyRange, percentileRange, wholeRange } from './calibration/thresholds.js';
import { readOptions, type OptionsOf, type Settings } from './option-table.js';
import { calibrationExtraTable, staticExtraTable, staticTable } from './static-options.js';
import { apply, checkListeners, outputOf, sourceOf, type TransformOptions, type TransformReport } from './transform.js';

/** Options of `quantizeStatic`; docs/quantization.md says what each means. */
export type QuantizeStaticOptions = OptionsOf<typeof staticTable> &
  TransformOptions & {
    /** What the Python tool takes in `extra_options`. */
    readonly extraOptions?: OptionsOf<typeof staticExtraTable> & OptionsOf<typeof calibrationExtraTable>;
    /** A JSON file of ranges: read, in place of a calibration, where it is there, and written where it is not. */
    readonly calibrationCachePath?: string | URL;
    /** Hears how many runs the calibration has made. */
    readonly onCalibration?: (progress: { readonly done: number }) => void;
  };

interface Given {
  readonly settings: Settings;
  readonly extra: Settings;
  readonly cache: string | undefined;
  readonly listeners: TransformOptions;
  readonly onCalibration: QuantizeStaticOptions['onCalibration'];
}

const what = 'quantizeStatic options';

function optionsOf(options: unknown): Given {
  if (typeof options !== 'object' || options === null) throw typeError("quantizeStatic: 'options' must be an object.");
  const given = options as QuantizeStaticOptions;
  const { extraOptions = {}, calibrationCachePath, signal, onProgress, onCalibration, ...own } = given;
  checkListeners('quantizeStatic', { signal, onProgress });
  if (onCalibration !== undefined && typeof onCalibration !== 'function') {
    throw typeError(`Invalid ${what}: 'onCalibration' must be a function, got ${describe(onCalibration)}.`);
  }
  if (typeof extraOptions !== 'object' || extraOptions === null) {
    throw typeError(`Invalid ${what}: 'extraOptions' must be an object, got ${describe(extraOptions)}.`);
  }
  const settings = readOptions(staticTable, own, what);
  const table = { ...staticExtraTable, ...calibrationExtraTable };
  const extra = readOptions(table, extraOptions, "'extraOptions' of quantizeStatic");
  extra['WeightSymmetric'] ??= !String(settings['weightType']).startsWith('QU');
  extra['CalibTensorRangeSymmetric'] ??= settings['calibrateMethod'] === 'Percentile';
  extra['MinimumRealRange'] ??= 0;
  if (settings['activationType'] === 'QInt8' && settings['weightType'] === 'QUInt8') {
    throw typeError(`Invalid ${what}: 'weightType' QUInt8 needs an 'activationType' that is not QInt8.`);
  }
  const cache = calibrationCachePath === undefined ? undefined : outputOf(calibrationCachePath);
  return { settings, extra, cache, listeners: { signal, onProgress }, onCalibration };
}

/** How ranges are found. */
function calibrationOf({ settings, extra, listeners, onCalibration }: Given): Calibration {
  const symmetric = extra['CalibTensorRangeSymmetric'] as boolean;
  const percentile = extra['CalibPercentile'] as number;
  const observers: Record<string, Calibration['observer']> = {
    MinMax: () =>
      new MinMax({
        symmetric,
        movingAverage: extra['CalibMovingAverage'] as boolean,
        constant: extra['CalibMovingAverageConstant'] as number,
      }),
    Entropy: () => new HistogramObserver(128, false, entropyRange(128)),
    Percentile: () => new HistogramObserver(2048, symmetric, percentileRange(percentile, symmetric)),
    Distribution: () => new HistogramObserver(2048, false, wholeRange),
  };
  const method = settings['calibrateMethod'] as string;
  return {
    observer: observers[method] as Calibration['observer'],
    passes: method === 'MinMax' ? 1 : 2,
    stride: (extra['CalibStridedMinMax'] as unknown as number | null) ?? Infinity,
    signal: listeners.signal,
    onRun(done) {
      try {
        onCalibration?.({ done });
      } catch (error) {
        throwApart(error);
      }
    },
  };
}

/** Runs the model, whose activations are made outputs for that, on the data. */
async function findRanges(source: string | Uint8Array, data: CalibrationData, given: Given): Promise<Ranges> {
  const folder = mkdtempSync(join(tmpdir(), 'infernode-calibration-'));
  try {
    const { opTypesToQuantize } = given.settings;
    const settings = { opTypesToQuantize, nodesToQuantize: [], nodesToExclude: [], useExternalDataFormat: false };
    const observed = join(folder, 'observed.onnx');
    const { signal } = given.listeners;
    await apply('observeTensors', settings as Settings, source, observed, signal ? { signal } : {});
    const session = await InferenceSession.create(observed, { logSeverityLevel: 3 });
    try {
      return await calibrate(session, data, calibrationOf(given));
    } finally {
      await session.release();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Throws before a long calibration what writing would throw after it. */
function checkApart(source: string | Uint8Array, output: string): void {
  if (typeof source !== 'string') return;
  const [there, own] = [source, output].map((path) => statSync(path, { throwIfNoEntry: false }));
  if (!there || !own || there.dev !== own.dev || there.ino !== own.ino) return;
  throw new InferenceError('INVALID_ARGUMENT', `${output} is the model that is read: give the result another name`, {
    path: output,
  });
}

/**
 * Writes the model with codes of few bits for weights and activations, by ranges that runs on `data` have: each value that
 * has codes passes through QuantizeLinear and DequantizeLinear (the format QDQ), from which runtimes make products of
 * codes. `data` may be null where the cache of `options` has the ranges. The file is written beside `output` and renamed;
 * the model's own files are never touched.
 */
export async function quantizeStatic(
  model: string | URL | Uint8Array,
  output: string | URL,
  data: CalibrationData | null,
  options: QuantizeStaticOptions = {},
): Promise<TransformReport> {
  const given = optionsOf(options);
  const { settings, extra, cache, listeners } = given;
  const [source, path] = [sourceOf(model), outputOf(output)];
  checkApart(source, path);
  const method = settings['calibrateMethod'] as string;
  let ranges = cache === undefined ? undefined : readRanges(cache, method);
  if (ranges === undefined) {
    checkCalibrationData(data);
    ranges = await findRanges(source, data, given);
    if (cache !== undefined) writeRanges(cache, method, ranges);
  }
  const all: Settings = { ...settings, rangeNames: [...ranges.keys()], ranges: Float64Array.from([...ranges.values()].flat()) }; // prettier-ignore
  for (const name of Object.keys(staticExtraTable)) all[name] = extra[name] as Settings[string];
  const axes = Object.entries(extra['QDQOpTypePerChannelSupportToAxis'] as unknown as Record<string, number>);
  all['QDQOpTypePerChannelSupportToAxis'] = axes.map(([operator, axis]) => `${operator}:${axis}`);
  return apply('quantizeStatic', all, source, path, listeners);
}
