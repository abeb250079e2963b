import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cachePath } from '../../scripts/lib/cache.mjs';
import { folderOnce } from '../../scripts/lib/download.mjs';
import { engineName } from '../../scripts/lib/engine.mjs';
import { peerFolder } from '../../scripts/lib/peer.mjs';
import { at } from '../../scripts/lib/project.mjs';
import { onnxTools, pythonEnvironment } from '../../scripts/lib/python.mjs';
import { run } from '../../scripts/lib/run.mjs';
import { architecture, checks } from '../../bench/architectures/workloads.mjs';
import { available } from '../fixtures/available.js';
import { relativeDistance, type Values, withEngine, worstError } from './agreement.js';

const minutes = 60_000;
const script = at('test', 'generators', 'contrib', 'optimize_transformer.py');

/** The model as the optimizer leaves it, and the com.microsoft operators in it. */
async function optimized(model: string, ...more: string[]): Promise<{ path: string; operators: string[] }> {
  const source = await architecture(model);
  const print = createHash('sha256').update(onnxTools.join()).update(readFileSync(script)).update(more.join());
  const python = await pythonEnvironment(onnxTools);
  const folder = await folderOnce(
    cachePath('ort-tools', `${model}-${print.digest('hex').slice(0, 16)}`),
    async (temporary) => {
      const operators = await run(python, [script, source, join(temporary, 'model.onnx'), ...more]);
      await writeFile(join(temporary, 'operators.txt'), operators);
    },
  );
  const operators = readFileSync(join(folder, 'operators.txt'), 'utf8').trim().split(/\s+/);
  return { path: join(folder, 'model.onnx'), operators };
}

async function answer(engine: string, path: string, feeds: Values): Promise<Values> {
  return withEngine(engine, {}, async (process) => {
    const { id } = await process.create(path, { logSeverityLevel: 3 });
    return (await process.run(id, feeds)) as Values;
  });
}

describe("what onnxruntime's transformer optimizer writes", () => {
  const shape = ['bert', '12', '384'];
  it.for([{ form: 'float32', more: [], fused: ['Attention', 'BiasGelu', 'SkipLayerNormalization'], tolerance: 1e-4 }])(
    'runs as in onnxruntime-node: $form',
    { timeout: 10 * minutes },
    async ({ more, fused, tolerance }, context) => {
      await available(context, 'onnxruntime-node', peerFolder);
      const { path, operators } = await available(context, "onnxruntime's Python tools", () =>
        optimized('minilm_l6', ...shape, ...more),
      );
      expect(operators).toEqual(expect.arrayContaining(fused));
      const feeds = checks.find(({ model }) => model === 'minilm_l6')!.inputs(1) as Values;
      const expected = await answer('peer', path, feeds);
      const { error, output } = worstError(await answer(engineName(), path, feeds), expected, relativeDistance);
      expect(error, output).toBeLessThan(tolerance);
    },
  );
});
