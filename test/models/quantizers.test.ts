// What infernode/quantization writes, beside what onnxruntime's own tools write: both run in onnxruntime.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, type TestContext } from 'vitest';
import { engineName } from '../../scripts/lib/engine.mjs';
import { at } from '../../scripts/lib/project.mjs';
import { onnxTools, pythonEnvironment } from '../../scripts/lib/python.mjs';
import { run } from '../../scripts/lib/run.mjs';
import { architecture, checks } from '../../bench/architectures/workloads.mjs';
import { Tensor } from '../../src/index.js';
import { quantizeDynamic, quantizeStatic, quantizeWeights } from '../../src/quantization.js';
import { available } from '../fixtures/available.js';
import { npy } from '../fixtures/npy.js';
import { type Values, withEngine } from './agreement.js';

const minutes = 60_000;
const folder = mkdtempSync(join(tmpdir(), 'infernode-quantizers-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Compared {
  readonly ours: Readonly<Record<string, number>>;
  readonly theirs: Readonly<Record<string, number>>;
  readonly answers: Readonly<Record<string, readonly number[]>>;
  readonly bytes: number;
}

/** What both tools' models give in onnxruntime. */
async function compare(
  context: TestContext,
  mode: string,
  source: string,
  ours: string,
  options: object,
  feeds: Values,
): Promise<Compared> {
  const python = await available(context, "onnxruntime's Python tools", () => pythonEnvironment(onnxTools));
  const file = join(folder, 'feeds.json');
  const plain = Object.entries(feeds).map(([name, { type, dims, data }]) => [
    name,
    { type, dims, data: Array.from(data as ArrayLike<number>, Number) },
  ]);
  writeFileSync(file, JSON.stringify(Object.fromEntries(plain)));
  const script = at('test', 'generators', 'contrib', 'quantizers.py');
  const printed = await run(python, [script, mode, source, ours, join(folder, 'theirs.onnx'), JSON.stringify(options), file]); // prettier-ignore
  return JSON.parse(printed.trim().split('\n').at(-1)!) as Compared;
}

/** No output lies further from the model's than theirs by more than 0.3 dB, the file is not larger, and this engine agrees. */
async function check(compared: Compared, ours: string, feeds: Values, tolerance: number): Promise<void> {
  expect(Object.keys(compared.ours).length).toBeGreaterThan(0);
  for (const [name, theirs] of Object.entries(compared.theirs)) expect(compared.ours[name], name).toBeGreaterThan(theirs - 0.3); // prettier-ignore
  expect(statSync(ours).size).toBeLessThanOrEqual(compared.bytes);
  const own = await withEngine(engineName(), {}, async (process) => {
    const { id } = await process.create(ours, { logSeverityLevel: 3 });
    return (await process.run(id, feeds)) as Values;
  });
  for (const [name, expected] of Object.entries(compared.answers)) {
    const actual = own[name]!.data as ArrayLike<number>;
    const largest = Math.max(...expected.map(Math.abs));
    const furthest = expected.reduce((most, value, i) => Math.max(most, Math.abs(actual[i]! - value)), 0);
    expect(actual).toHaveLength(expected.length);
    expect(furthest / largest, name).toBeLessThan(tolerance);
  }
}

/** The file of one of `checks`, and what it is fed. */
async function workload(name: string): Promise<readonly [source: string, feeds: Values]> {
  const { model, inputs } = checks.find((each) => each.name === name)!;
  return [await architecture(model), inputs(1) as Values];
}

describe('weights of few bits', () => {
  it.for([
    { model: 'minilm_l6', bits: 4, blockSize: 32, isSymmetric: true },
    { model: 'minilm_l6', bits: 8, blockSize: 64, isSymmetric: false },
    { model: 'minilm_l6', bits: 4, blockSize: 32, isSymmetric: false, operators: ['MatMul', 'Gather'] },
    { model: 'llama_tiny decode', bits: 4, blockSize: 16, isSymmetric: false },
  ] as const)(
    '$model: $bits bits, blocks of $blockSize, symmetric: $isSymmetric',
    { timeout: 10 * minutes },
    async (given, context) => {
      const { model, operators, ...options } = { operators: ['MatMul'] as const, ...given };
      const [source, feeds] = await workload(model);
      const ours = join(folder, 'ours.onnx');
      await quantizeWeights(source, ours, { ...options, opTypesToQuantize: operators });
      const python = {
        bits: options.bits,
        block_size: options.blockSize,
        is_symmetric: options.isSymmetric,
        op_types_to_quantize: operators,
      };
      const compared = await compare(context, 'weights', source, ours, python, feeds);
      await check(compared, ours, feeds, 1e-3);
    },
  );
});

describe('8 bits, with activations that are quantized in each run', () => {
  it.for([
    { model: 'minilm_l6', perChannel: true, weightType: 'QInt8', reduceRange: true }, // as below
    { model: 'minilm_l6', perChannel: false, weightType: 'QUInt8' },
    { model: 'mobilenet_v2', perChannel: false, weightType: 'QUInt8' },
  ] as const)('$model: $weightType, by channel: $perChannel', { timeout: 10 * minutes }, async (given, context) => {
    const { model, ...options } = { reduceRange: false, ...given };
    const [source, feeds] = await workload(model);
    const ours = join(folder, 'ours.onnx');
    await quantizeDynamic(source, ours, options);
    const python = {
      per_channel: options.perChannel,
      weight_type: options.weightType,
      reduce_range: options.reduceRange,
    };
    const compared = await compare(context, 'dynamic', source, ours, python, feeds);
    await check(compared, ours, feeds, 0.05);
  });
});

describe('codes of activations, by ranges that a calibration finds', () => {
  /** Ranges of a cache, by names of tensors. */
  function rangesOf(path: string): Record<string, readonly [number, number]> {
    const { data } = JSON.parse(readFileSync(path, 'utf8').replaceAll(/: NaN\b/g, ': null')) as {
      data: Record<string, Record<string, unknown>>;
    };
    const number = (value: unknown): number =>
      Number([typeof value === 'object' ? (value as { data: unknown }).data : value].flat(3)[0]);
    return Object.fromEntries(Object.entries(data).map(([name, { lowest, highest }]) => [name, [number(lowest), number(highest)]])); // prettier-ignore
  }

  it.for([
    { model: 'mobilenet_v2', activationType: 'QUInt8', calibrateMethod: 'MinMax' },
    { model: 'mobilenet_v2', activationType: 'QInt16', calibrateMethod: 'MinMax', extra: { CalibStridedMinMax: 2, CalibMovingAverage: true, CalibMovingAverageConstant: 0.5 } }, // prettier-ignore
    { model: 'mobilenet_v2', activationType: 'QInt8', calibrateMethod: 'Percentile', extra: { CalibStridedMinMax: 2 } },
    { model: 'mobilenet_v2', activationType: 'QUInt8', calibrateMethod: 'Percentile', extra: { CalibPercentile: 99.9, CalibTensorRangeSymmetric: false } }, // prettier-ignore
    { model: 'mobilenet_v2', activationType: 'QUInt8', calibrateMethod: 'Entropy', extra: { CalibStridedMinMax: 1 } },
    { model: 'mobilenet_v2', activationType: 'QUInt8', calibrateMethod: 'Distribution' },
    { model: 'minilm_l6', activationType: 'QUInt8', calibrateMethod: 'MinMax', perChannel: true },
  ] as const)('$model: $activationType by $calibrateMethod', { timeout: 10 * minutes }, async (given, context) => {
    const { model, activationType, calibrateMethod, perChannel, extra } = { perChannel: false, extra: {}, ...given };
    const [source, feeds] = await workload(model);
    const { inputs } = checks.find((each) => each.name === model)!;
    const runs = [1, 2, 3, 4].map((seed) => inputs(seed) as Values);
    const data = mkdtempSync(join(folder, 'data-'));
    for (const [i, run] of runs.entries()) {
      mkdirSync(join(data, String(i)));
      for (const [name, { type, dims, data: elements }] of Object.entries(run))
        writeFileSync(join(data, String(i), `${name}.npy`), npy(elements as Float32Array, dims, type === 'int64' ? '<i8' : '<f4')); // prettier-ignore
    }
    const [ours, cache, theirCache] = ['ours.onnx', 'ours.json', 'theirs.json'].map((name) => join(folder, name)) as [string, string, string]; // prettier-ignore
    for (const path of [cache, theirCache]) rmSync(path, { force: true });
    const tensors = runs.map(
      (run) =>
      Object.fromEntries(Object.entries(run).map(([name, { type, dims, data: elements }]) => [name, new Tensor(type as 'float32', elements as Float32Array, dims)])), // prettier-ignore
    );
    const options = { activationType, calibrateMethod, perChannel, reduceRange: true, extraOptions: extra } as const;
    await quantizeStatic(source, ours, tensors, { ...options, calibrationCachePath: cache });
    const python = {
      activation_type: activationType,
      calibrate_method: calibrateMethod,
      per_channel: perChannel,
      reduce_range: true, // sums of pairs saturate otherwise, on CPUs without VNNI
      extra_options: extra,
      calibration_cache_path: theirCache,
      data,
    };
    const compared = await compare(context, 'static', source, ours, python, feeds);
    const [found, expected] = [rangesOf(cache), rangesOf(theirCache)];
    for (const [name, range] of Object.entries(expected)) {
      if (!(name in found)) continue; // the results of Constants, which are no activations here
      const length = Math.max(Math.abs(range[0]), Math.abs(range[1]));
      for (const end of [0, 1] as const) expect(Math.abs(found[name]![end] - range[end]), name).toBeLessThanOrEqual(1e-5 * length); // prettier-ignore
    }
    expect(Object.keys(found).length).toBeGreaterThan(100);
    // The Python tool drops Relu and Clip also where the range of codes lets through what they do not.
    const bytes = calibrateMethod === 'Distribution' ? Infinity : compared.bytes;
    await check({ ...compared, bytes }, ours, feeds, 0.1);
  });
});
