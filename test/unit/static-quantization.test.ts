// quantizeStatic, its calibration, and `infernode quantize static` with the files that it reads.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32, deflateRawSync } from 'node:zlib';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { projectRoot } from '../../scripts/lib/engine.mjs';
import { InferenceSession, Tensor } from '../../src/index.js';
import { quantizeStatic, type CalibrationFeeds, type QuantizeStaticOptions } from '../../src/quantization.js';
import { npy } from '../fixtures/npy.js';
import { model, node, tensorProto, type TensorInfo } from '../fixtures/onnx-writer.js';

const root = mkdtempSync(join(tmpdir(), 'infernode-static-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const f32 = (name: string, shape: TensorInfo['shape']): TensorInfo => ({ name, type: 'float32', shape });
/** Numbers from -1 to 1. */
const drawn = (length: number, seed = 0): Float32Array =>
  Float32Array.from({ length }, (_, i) => (Math.sin(i + 1 + seed * 1000) * 43758.5453) % 1);

/** y = relu(x * w + b) * v */
const bytes = model({
  nodes: [
    node('Gemm', ['x', 'w', 'b'], ['a'], { name: 'one' }),
    node('Relu', ['a'], ['r']),
    node('MatMul', ['r', 'v'], ['y'], { name: 'two' }),
  ],
  inputs: [f32('x', ['batch', 64])],
  outputs: [f32('y', ['batch', 8])],
  initializers: [
    { name: 'w', type: 'float32', dims: [64, 64], data: drawn(4096) },
    { name: 'b', type: 'float32', dims: [64], data: drawn(64, 1) },
    { name: 'v', type: 'float32', dims: [64, 8], data: drawn(512, 2) },
  ],
});

let folder: string, path: string, output: string;
beforeEach(() => {
  folder = mkdtempSync(join(root, 'case-'));
  path = join(folder, 'model.onnx');
  output = join(folder, 'quantized.onnx');
  writeFileSync(path, bytes);
});

const input = (seed: number): Tensor => new Tensor('float32', drawn(128, seed), [2, 64]);
const data = (count = 4): CalibrationFeeds[] => Array.from({ length: count }, (_, i) => ({ x: input(i) }));

async function answer(file: string): Promise<Float32Array> {
  const session = await InferenceSession.create(file);
  const { y } = await session.run({ x: input(1) });
  await session.release();
  return (y as Tensor).data as Float32Array;
}

/** The signal's power over the error's, in decibels. */
function sqnr(actual: Float32Array, expected: Float32Array): number {
  const power = (values: Iterable<number>): number => [...values].reduce((sum, value) => sum + value * value, 0);
  return 10 * Math.log10(power(expected) / power(actual.map((value, i) => value - expected[i]!)));
}

/** The ranges that a calibration on these values of x finds, by the cache that it writes. */
async function rangeOfX(values: readonly number[][], options: QuantizeStaticOptions = {}): Promise<[number, number]> {
  const cache = join(folder, `cache-${readdirSync(folder).length}.json`);
  const feeds = values.map((each) => ({ x: new Tensor('float32', Float32Array.from(each), [each.length / 64, 64]) }));
  await quantizeStatic(path, output, feeds, { ...options, calibrationCachePath: cache });
  const { lowest, highest } = (JSON.parse(readFileSync(cache, 'utf8')) as { data: Record<string, Record<string, number>> }).data['x']!; // prettier-ignore
  return [lowest!, highest!];
}
/** 64 numbers of which one is `least` and one `largest`. */
const between = (least: number, largest: number): number[] =>
  Array.from({ length: 64 }, (_, i) => least + ((largest - least) * i) / 63);

describe('quantizeStatic', () => {
  it('writes a smaller model that gives nearly the same', async () => {
    const expected = await answer(path);
    const heard: number[] = [];
    const report = await quantizeStatic(path, output, data(), {
      activationType: 'QUInt8',
      onCalibration: ({ done }) => heard.push(done),
    });
    expect(report.nodes).toMatchObject([
      { name: 'one', became: 'QDQ Gemm' },
      { opType: 'Relu', became: 'QuantizeLinear' },
      { name: 'two', became: 'QDQ MatMul' },
    ]);
    expect(heard).toEqual([1, 2, 3, 4]);
    expect(report.bytesAfter).toBeLessThan(bytes.length / 2.5);
    expect(sqnr(await answer(output), expected)).toBeGreaterThan(30);
    expect(new Uint8Array(readFileSync(path))).toEqual(bytes);
    expect(readdirSync(folder).sort()).toEqual(['model.onnx', 'quantized.onnx']);
  });

  it.each([
    [{ activationType: 'QInt8', perChannel: true }, 30],
    [{ activationType: 'QInt16', weightType: 'QInt16' }, 70],
    [{ activationType: 'QUInt16', weightType: 'QInt4', perChannel: true }, 15],
    [{ extraOptions: { DedicatedQDQPair: true, ActivationSymmetric: true, MinimumRealRange: 0.001 } }, 30],
    [{ activationType: 'QUInt8', extraOptions: { ActivationRestrictedAsymmetric: true } }, 30],
    [{ perChannel: true, extraOptions: { QDQOpTypePerChannelSupportToAxis: { MatMul: 1, Gemm: -1 } } }, 30],
    [{ calibrateMethod: 'Entropy' }, 28],
    [{ calibrateMethod: 'Percentile' }, 28],
    [{ calibrateMethod: 'Distribution' }, 25],
  ] as const)('has the option %j', async (options, decibels) => {
    await quantizeStatic(bytes, output, data(), options);
    expect(sqnr(await answer(output), await answer(path))).toBeGreaterThan(decibels);
  });

  it('takes feeds that come one after another, and ends when its signal aborts', async () => {
    const controller = new AbortController();
    const reason = new Error('enough');
    async function* feeds(): AsyncGenerator<CalibrationFeeds> {
      yield* data(2);
      await Promise.resolve();
      controller.abort(reason);
      yield* data(2);
    }
    await expect(quantizeStatic(path, output, feeds(), { signal: controller.signal })).rejects.toMatchObject({ code: 'ABORTED' }); // prettier-ignore
    expect(existsSync(output)).toBe(false);
    expect((await quantizeStatic(path, output, feeds())).files).toEqual([output]);
  });

  it('keeps its ranges, which need no data again', async () => {
    const cache = join(folder, 'ranges.json');
    await quantizeStatic(path, output, data(), { calibrationCachePath: cache });
    const first = readFileSync(output);
    expect(Object.keys((JSON.parse(readFileSync(cache, 'utf8')) as { data: object }).data).sort()).toEqual(['a', 'r', 'x', 'y']); // prettier-ignore
    await quantizeStatic(path, output, null, { calibrationCachePath: cache });
    expect(readFileSync(output)).toEqual(first);
    const other = quantizeStatic(path, output, null, { calibrationCachePath: cache, calibrateMethod: 'Entropy' });
    await expect(other).rejects.toThrow('has ranges that MinMax found, not Entropy');
    // As the Python tool writes it.
    const array = (value: number): object => ({ data: [value], dtype: 'float32', CLS: 'numpy.array' });
    const ranges = Object.fromEntries(['a', 'r', 'x', 'y'].map((name) => [name, { lowest: array(-9), highest: array(9) }])); // prettier-ignore
    const method = { CLS: 'CalibrationMethod', value: 'CalibrationMethod.MinMax' };
    writeFileSync(cache, JSON.stringify({ data: ranges, calibration_method: method, std: 7 }).replace('7', 'NaN'));
    await quantizeStatic(path, output, null, { calibrationCachePath: cache });
    for (const [text, message] of [
      ['{', 'cannot be read'],
      ['{}', 'holds no ranges'],
      [
        JSON.stringify({ data: { x: { lowest: 1, highest: 'a' } }, calibration_method: method }),
        "has no range for 'x'",
      ],
      [JSON.stringify({ data: { x: { lowest: 0, highest: 1 } }, calibration_method: method }), "lack that of 'a'"],
    ] as const) {
      writeFileSync(cache, text);
      await expect(quantizeStatic(path, output, null, { calibrationCachePath: cache })).rejects.toThrow(message);
    }
  });

  it.each([
    [
      { activationType: 'QInt4' },
      "'activationType' must be one of 'QInt8', 'QUInt8', 'QInt16', 'QUInt16', got 'QInt4'.",
    ],
    [{ weightType: 'QUInt8' }, "'weightType' QUInt8 needs an 'activationType' that is not QInt8."],
    [{ calibrateMethod: 'Max' }, "'calibrateMethod' must be one of 'MinMax', "],
    [{ extraOptions: { CalibPercentile: 101 } }, "'CalibPercentile' must be a number from 0 to 100, got 101."],
    [{ extraOptions: { CalibStridedMinMax: 1.5 } }, "'CalibStridedMinMax' must be a whole number from 1 to 1000000000"],
    [{ extraOptions: { QDQOpTypePerChannelSupportToAxis: { MatMul: 'a' } } }, "must be an object of axes by operators, got 'a'."], // prettier-ignore
    [{ extraOptions: null }, "'extraOptions' must be an object"],
    [{ onCalibration: 1 }, "'onCalibration' must be a function"],
    [{ calibrationCachePath: '' }, 'must be the path of a file'],
  ])('refuses %j', async (options, message) => {
    const error = await quantizeStatic(path, output, data(), options as object).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(message) });
  });

  it('says which of the data is wrong, and how', async () => {
    const failure = (feeds: unknown): Promise<unknown> =>
      quantizeStatic(path, output, feeds as CalibrationFeeds[]).catch((error: unknown) => error);
    const nan = new Tensor('float32', new Float32Array(64).fill(NaN), [1, 64]);
    const huge = new Tensor('float32', new Float32Array(64).fill(3e38), [1, 64]);
    expect(await failure([...data(1), { x: nan }])).toMatchObject({ message: "calibration data 1: 'x' has an element that is no finite number" }); // prettier-ignore
    expect(await failure([{ x: huge }])).toMatchObject({ message: expect.stringMatching(/^calibration data 0: the tensor '.' that the model makes of it has/) }); // prettier-ignore
    expect(await failure([{ x: new Tensor('float32', drawn(10), [1, 10]) }])).toMatchObject({
      code: 'SHAPE_MISMATCH',
      message: expect.stringContaining('calibration data 0: '),
    });
    expect(await failure([{ z: input(0) }])).toMatchObject({
      message: expect.stringContaining('calibration data 0: '),
    });
    expect(await failure([null])).toMatchObject({ message: 'calibration data 0: feeds must be an object, got null.' });
    expect(await failure([])).toMatchObject({ message: 'the calibration data is empty' });
    expect(await failure(null)).toMatchObject({
      message: 'The calibration data must be feeds to iterate over, got null.',
    });
    expect(existsSync(output)).toBe(false);
  });

  it('refuses models that are quantized already, and a result in the place of the model', async () => {
    await expect(quantizeStatic(path, path, data())).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', path, message: expect.stringContaining('give the result another name') }); // prettier-ignore
    expect(new Uint8Array(readFileSync(path))).toEqual(bytes);
    await quantizeStatic(path, output, data());
    const again = quantizeStatic(output, join(folder, 'again.onnx'), data());
    await expect(again).rejects.toMatchObject({ code: 'INVALID_MODEL', message: expect.stringContaining('the model is quantized already') }); // prettier-ignore
  });
});

describe('calibrations', () => {
  it('by the extremes, and by moving averages of them', async () => {
    const runs = [between(-1, 2), between(-3, 1), between(-2, 4)];
    expect(await rangeOfX(runs)).toEqual([-3, 4]);
    expect(await rangeOfX(runs, { extraOptions: { CalibTensorRangeSymmetric: true } })).toEqual([-4, 4]);
    const average = { CalibMovingAverage: true };
    const [lowest, highest] = await rangeOfX(runs, { extraOptions: average });
    expect([lowest, highest]).toEqual([-2, expect.closeTo(7 / 3, 6)]);
    const strided = { ...average, CalibStridedMinMax: 1, CalibMovingAverageConstant: 0.5 };
    expect(await rangeOfX(runs, { extraOptions: strided })).toEqual([-2, 2.75]);
  });

  it('by the share of values that is within', async () => {
    const many = Array.from({ length: 6400 }, (_, i) => (i % 100 === 0 ? 10 : (i % 100) / 100));
    const options = { calibrateMethod: 'Percentile' } as const;
    expect((await rangeOfX([many], options))[1]).toBeCloseTo(10, 1);
    const [lowest, highest] = await rangeOfX([many], { ...options, extraOptions: { CalibPercentile: 98 } });
    expect(lowest).toBeCloseTo(0.01, 6);
    expect(highest).toBeCloseTo(0.98, 1);
    const both = { CalibPercentile: 97, CalibTensorRangeSymmetric: false };
    expect((await rangeOfX([many], { ...options, extraOptions: both }))[1]).toBeCloseTo(0.99, 1);
  });

  it('by the least loss of information, and by all bins', async () => {
    const normal = (scale: number): number[] =>
      Array.from({ length: 64 * 200 }, (_, i) => scale * (drawn(1, i)[0]! + drawn(1, i + 0.3)[0]! + drawn(1, i + 0.7)[0]!)); // prettier-ignore
    const outliers = [...normal(1), ...between(-40, 30)];
    const strided = { calibrateMethod: 'Entropy', extraOptions: { CalibStridedMinMax: 1 } } as const;
    const [lowest, highest] = await rangeOfX([normal(1), outliers], strided);
    expect(lowest).toBeGreaterThan(-40);
    expect(highest).toBeLessThan(30);
    expect(await rangeOfX([between(-1, 2)], { calibrateMethod: 'Distribution' })).toEqual([-2, 2]);
    expect(await rangeOfX([between(0, 0), between(-1, 2)], strided)).toEqual([-1, 2]);
  });
});

/** A ZIP of one file. */
function npz(name: string, content: Buffer, packs: boolean): Buffer {
  const packed = packs ? deflateRawSync(content) : content;
  const common = Buffer.alloc(26);
  common.writeUInt16LE(20, 0);
  common.writeUInt16LE(packs ? 8 : 0, 4);
  common.writeUInt32LE(crc32(content), 10);
  common.writeUInt32LE(packed.length, 14);
  common.writeUInt32LE(content.length, 18);
  common.writeUInt16LE(name.length, 22);
  const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, Buffer.from(name), packed]);
  const central = Buffer.concat([Buffer.from('PK\x01\x02\x14\x00'), common, Buffer.alloc(14), Buffer.from(name)]);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(1, 4);
  end.writeUInt16LE(1, 6);
  end.writeUInt32LE(central.length, 8);
  end.writeUInt32LE(local.length, 12);
  return Buffer.concat([local, central, Buffer.from('PK\x05\x06'), end]);
}

describe('infernode quantize static', () => {
  const command = join(projectRoot, 'dist', 'infernode.cjs');
  const infernode = (...args: string[]) => {
    const all = [command, 'quantize', 'static', 'model.onnx', '--out', 'q.onnx', ...args];
    return spawnSync(process.execPath, all, { cwd: folder, encoding: 'utf8' });
  };
  let runs: string;
  beforeEach(() => {
    runs = join(folder, 'runs');
    mkdirSync(runs);
  });
  const file = npy(drawn(128), [2, 64]);

  it.each([
    ['x.npy', file],
    ['0.npz', npz('x.npy', file, true)],
    ['0.npz', npz('x.npy', file, false)],
    ['run/x.npy', file],
    ['test_data_set_0/input_0.pb', tensorProto({ name: 'x', type: 'float32', dims: [2, 64], data: drawn(128) })],
    ['test_data_set_0/input_0.pb', tensorProto({ name: '', type: 'float32', dims: [2, 64], data: drawn(128) })],
  ])('reads %s', (name, content) => {
    mkdirSync(join(runs, name, '..'), { recursive: true });
    writeFileSync(join(runs, name), content);
    writeFileSync(join(runs, 'README'), 'passed over');
    const done = infernode('--calibration-data', 'runs', '--activation-type', 'QUInt8', '--calibration-cache-path', 'r.json', '--minimum-real-range', '0.01', '--qdq-op-type-per-channel-support-to-axis', 'MatMul:1,Gemm:1'); // prettier-ignore
    expect(done).toMatchObject({
      status: 0,
      stderr: '',
      stdout: expect.stringContaining('1 MatMul became QDQ MatMul'),
    });
    const { lowest, highest } = (JSON.parse(readFileSync(join(folder, 'r.json'), 'utf8')) as { data: Record<string, Record<string, number>> }).data['x']!; // prettier-ignore
    expect([lowest, highest]).toEqual([Math.min(...drawn(128)), Math.max(...drawn(128))]);
    expect(infernode('--calibration-cache-path', 'r.json').status).toBe(0);
  });

  it.each([
    ['x.npy', 'is no .npy file', Buffer.from('no such file')],
    ['x.npy', 'has 512 bytes for 126 of float32', npy(drawn(128), [2, 63])],
    ['x.npy', "has elements of type '>f4'", npy(drawn(128), [2, 64], '>f4')],
    ['x.npy', 'has its first axis vary fastest: save it in C order', npy(drawn(128), [2, 64], '<f4', 'True')],
    ['0.npz', 'is no .npz file', Buffer.from('PK')],
    ['0.npz', 'is damaged', npz('x.npy', file, false).subarray(100)],
    ['run/input_0.pb', 'is damaged', Buffer.from([0x0a, 0xff])],
    ['run/input_9.pb', 'has no name, and the model has no input of this number', tensorProto({ name: '', type: 'float32', dims: [1], data: drawn(1) })], // prettier-ignore
    ['run/input_0.pb', 'has elements of type string', tensorProto({ name: 'x', type: 'string', dims: [1], data: ['a'] })], // prettier-ignore
    ['README', 'holds no .npy or .npz files', Buffer.alloc(0)],
  ])('says of %s that it %s', (name, message, content) => {
    mkdirSync(join(runs, name, '..'), { recursive: true });
    writeFileSync(join(runs, name), content);
    expect(infernode('--calibration-data', 'runs')).toMatchObject({
      status: 1,
      stderr: expect.stringContaining(message),
    });
    expect(existsSync(join(folder, 'q.onnx'))).toBe(false);
  });

  it.each([
    [[], '--calibration-data FOLDER says what to run'],
    [['--calibration-data', 'nowhere'], '--calibration-data takes a folder'],
    [['--calibration-data', 'runs', '--calib-percentile', 'high'], "'CalibPercentile' must be a number from 0 to 100"],
    [
      ['--calibration-data', 'runs', '--qdq-op-type-per-channel-support-to-axis', 'MatMul'],
      'must be an object of axes',
    ],
  ])('ends with status 2 for a mistake: %j', (args, message) => {
    expect(infernode(...args)).toMatchObject({ status: 2, stderr: expect.stringContaining(message) });
  });
});
