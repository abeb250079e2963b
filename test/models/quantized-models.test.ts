// Models that onnxruntime's static quantizer writes run on codes, as in onnxruntime-node.
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { cachePath } from '../../scripts/lib/cache.mjs';
import { folderOnce } from '../../scripts/lib/download.mjs';
import { engineName } from '../../scripts/lib/engine.mjs';
import { peerFolder, peerSaturates } from '../../scripts/lib/peer.mjs';
import { at } from '../../scripts/lib/project.mjs';
import { onnxTools, pythonEnvironment } from '../../scripts/lib/python.mjs';
import { run } from '../../scripts/lib/run.mjs';
import { available } from '../fixtures/available.js';
import { type Values, withEngine } from './agreement.js';

const minutes = 60_000;
const script = at('test', 'generators', 'contrib', 'quantize_static.py');
const saved = mkdtempSync(join(tmpdir(), 'infernode-'));
afterAll(() => rmSync(saved, { recursive: true }));

const operators = [
  'QLinearConv',
  'QLinearAdd',
  'QLinearMul',
  'QLinearSigmoid',
  'QLinearConcat',
  'QLinearMatMul',
  'QGemm',
];

/** The folder of the models, made on first use and again when the script has changed. */
async function quantized(): Promise<string> {
  const print = createHash('sha256').update(onnxTools.join()).update(readFileSync(script)).digest('hex');
  const python = await pythonEnvironment(onnxTools);
  return folderOnce(cachePath('quantized', print.slice(0, 16)), async (folder) => {
    await run(python, [script, folder]);
  });
}

const feeds = (batch: number): Values => {
  const dims = [batch, 16, 20, 20];
  const data = Float32Array.from({ length: batch * 6400 }, (_, i) => 1.4 * Math.sin(i * 12.9898));
  return { x: { type: 'float32', dims, data } };
};

async function answer(engine: string, path: string, options: object, batch: number): Promise<number[]> {
  return withEngine(engine, {}, async (process) => {
    const { id } = await process.create(path, { logSeverityLevel: 3, ...options });
    const { y } = (await process.run(id, feeds(batch))) as Values;
    return Array.from(y!.data as ArrayLike<number>);
  });
}

const furthest = (a: number[], b: number[]) => Math.max(...a.map((value, i) => Math.abs(value - b[i]!)));

describe.each(['u8', 's8'])('a model quantized to %s', (type) => {
  it('gives what onnxruntime-node gives, within a step', { timeout: 10 * minutes }, async (context) => {
    await available(context, 'onnxruntime-node', peerFolder);
    const folder = await available(context, "onnxruntime's Python tools", quantized);
    const path = join(folder, `${type}.onnx`);
    const steps = JSON.parse(readFileSync(join(folder, 'steps.json'), 'utf8')) as Record<string, number>;
    const step = steps[type]! * 1.001;
    const optimizedModelFilePath = join(saved, `${type}.onnx`);
    // Unoptimized, it computes on floats, whose sums do not saturate.
    const expected = await answer('peer', path, peerSaturates ? { graphOptimizationLevel: 'disabled' } : {}, 3);
    expect(expected).toHaveLength(30);
    expect(new Set(expected).size).toBeGreaterThan(5);
    expect(furthest(await answer(engineName(), path, { optimizedModelFilePath }, 3), expected)).toBeLessThan(step);
    const off = { extra: { session: { disable_quant_qdq: '1' } } };
    expect(furthest(await answer(engineName(), path, off, 3), expected)).toBeLessThan(step);
    // What was saved computes on codes, in either engine.
    const text = readFileSync(optimizedModelFilePath, 'latin1');
    for (const operator of operators) expect(text).toContain(operator);
    for (const engine of ['peer', engineName()])
      expect(furthest(await answer(engine, optimizedModelFilePath, {}, 1), expected.slice(0, 10))).toBeLessThan(
        engine === 'peer' && peerSaturates ? 4 * step : step,
      );
  });

  it('takes a number in the place of codes, as onnxruntime-node does', { timeout: 10 * minutes }, async (context) => {
    await available(context, 'onnxruntime-node', peerFolder);
    const path = join(await available(context, "onnxruntime's Python tools", quantized), `where-${type}.onnx`);
    const expected = await answer('peer', path, {}, 2);
    expect(await answer('peer', path, { graphOptimizationLevel: 'disabled' }, 2)).toEqual(expected);
    expect(new Set(expected).size).toBeGreaterThan(50);
    for (const level of ['disabled', 'basic', 'extended'] as const) {
      const optimizedModelFilePath = join(saved, `where-${type}-${level}.onnx`);
      const options = { graphOptimizationLevel: level, optimizedModelFilePath };
      expect(await answer(engineName(), path, options, 2)).toEqual(expected);
      for (const engine of ['peer', engineName()])
        expect(await answer(engine, optimizedModelFilePath, {}, 2)).toEqual(expected);
      const text = readFileSync(optimizedModelFilePath, 'latin1');
      expect(text.includes('c_dequantized')).toBe(level === 'basic');
      expect(text.includes('QLinearWhere')).toBe(level === 'extended');
    }
  });
});
