// What infernode/quantization writes, beside what onnxruntime's own tools write: both run in onnxruntime.
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, type TestContext } from 'vitest';
import { engineName } from '../../scripts/lib/engine.mjs';
import { at } from '../../scripts/lib/project.mjs';
import { onnxTools, pythonEnvironment } from '../../scripts/lib/python.mjs';
import { run } from '../../scripts/lib/run.mjs';
import { architecture, checks } from '../../bench/architectures/workloads.mjs';
import { quantizeDynamic, quantizeWeights } from '../../src/quantization.js';
import { available } from '../fixtures/available.js';
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
    { model: 'minilm_l6', perChannel: true, weightType: 'QInt8' },
    { model: 'minilm_l6', perChannel: false, weightType: 'QUInt8' },
    { model: 'mobilenet_v2', perChannel: false, weightType: 'QUInt8' },
  ] as const)('$model: $weightType, by channel: $perChannel', { timeout: 10 * minutes }, async (given, context) => {
    const { model, ...options } = given;
    const [source, feeds] = await workload(model);
    const ours = join(folder, 'ours.onnx');
    await quantizeDynamic(source, ours, options);
    const python = { per_channel: options.perChannel, weight_type: options.weightType };
    const compared = await compare(context, 'dynamic', source, ours, python, feeds);
    await check(compared, ours, feeds, 0.05);
  });
});
