// Files that onnxruntime wrote are read here; what is saved here is read there. Between the models there are
// convolutions, attention, recurrence of control flow, strings, sequences and quantized values.
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { cachePath } from '../../scripts/lib/cache.mjs';
import { folderOnce } from '../../scripts/lib/download.mjs';
import type { EngineProcess } from '../../scripts/lib/engine-process.mjs';
import { engineName } from '../../scripts/lib/engine.mjs';
import { peerFolder } from '../../scripts/lib/peer.mjs';
import { at } from '../../scripts/lib/project.mjs';
import { onnxTools, pythonEnvironment } from '../../scripts/lib/python.mjs';
import { run } from '../../scripts/lib/run.mjs';
import { arrayOf } from '../../scripts/lib/values.mjs';
import { available } from '../fixtures/available.js';
import { relativeDistance, type Values, withEngine, worstError } from './agreement.js';

const minutes = 60_000;
const scripts = at('test', 'generators', 'contrib');
const saved = mkdtempSync(join(tmpdir(), 'infernode-'));
afterAll(() => rmSync(saved, { recursive: true }));

interface Case {
  name: string;
  inputs: Record<string, { type: string; dims: number[]; data: (number | string)[] }>;
}

/** The models and their forms in onnxruntime's own format, made once. */
async function files(): Promise<string> {
  const print = createHash('sha256').update(onnxTools.join());
  for (const name of ['make_ort_files.py', 'layers.py', 'tools.py', 'case.py'])
    print.update(readFileSync(join(scripts, name)));
  const python = await pythonEnvironment(onnxTools);
  return folderOnce(cachePath('ort-files', print.digest('hex').slice(0, 16)), async (temporary) => {
    await run(python, ['-B', join(scripts, 'make_ort_files.py'), temporary]);
  });
}

function feeds({ inputs }: Case): Values {
  const array = (type: string, data: (number | string)[]): Values[string]['data'] => {
    if (type === 'string') return data as string[];
    return type === 'int64' ? BigInt64Array.from(data, BigInt) : arrayOf.float32.from(data as number[]);
  };
  return Object.fromEntries(
    Object.entries(inputs).map(([name, { type, dims, data }]) => [name, { type, dims, data: array(type, data) }]),
  );
}

/** Codes of int8 fall to the other side of a rounding edge here and there. */
const tolerance = ({ name }: Case) => (name === 'int8' || name === 'coded' ? 2e-2 : 1e-5);

async function answer(engine: EngineProcess, path: string, item: Case, options: object = {}): Promise<Values> {
  const { id } = await engine.create(path, { logSeverityLevel: 3, ...options });
  const results = (await engine.run(id, feeds(item))) as Values;
  await engine.release(id);
  return results;
}

describe("onnxruntime's own format and models saved here", () => {
  it('are read by either engine with the same answers', { timeout: 10 * minutes }, async (context) => {
    await available(context, 'onnxruntime-node', peerFolder);
    const folder = await available(context, "onnxruntime's Python tools", files);
    const cases = JSON.parse(readFileSync(join(folder, 'cases.json'), 'utf8')) as Case[];
    expect(cases.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['conv', 'bert', 'int8', 'strings', 'sequences', 'control_flow']),
    );
    const wrong: string[] = [];
    const check = async (item: Case, peer: EngineProcess, engine: EngineProcess): Promise<void> => {
      const original = join(folder, `${item.name}.onnx`);
      const expected = await answer(peer, original, item);
      const hold = async (reader: EngineProcess, path: string, options: object = {}): Promise<void> => {
        const where = `${path} in ${reader === peer ? 'onnxruntime-node' : 'infernode'}`;
        try {
          const { error, output } = worstError(await answer(reader, path, item, options), expected, relativeDistance);
          if (!(error < tolerance(item))) wrong.push(`${where}: ${output} is ${error} away`);
        } catch (error) {
          wrong.push(`${where}: ${(error as Error).message}`);
        }
      };
      for (const ending of ['.ort', '.extended.ort']) {
        for (const graphOptimizationLevel of ['disabled', 'all'])
          await hold(engine, join(folder, item.name + ending), { graphOptimizationLevel });
      }
      for (const graphOptimizationLevel of ['disabled', 'basic', 'extended', 'all']) {
        for (const ending of ['onnx', 'ort']) {
          const optimizedModelFilePath = join(saved, `${item.name}-${graphOptimizationLevel}.${ending}`);
          await hold(engine, original, { graphOptimizationLevel, optimizedModelFilePath });
          await hold(engine, optimizedModelFilePath);
          await hold(peer, optimizedModelFilePath);
        }
      }
    };
    await withEngine('peer', {}, (peer) =>
      withEngine(engineName(), {}, async (engine) => {
        for (const item of cases) await check(item, peer, engine);
      }),
    );
    expect(wrong).toEqual([]);
  });
});
