import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cachePath } from '../../scripts/lib/cache.mjs';
import { folderOnce } from '../../scripts/lib/download.mjs';
import { at } from '../../scripts/lib/project.mjs';
import { pythonEnvironment } from '../../scripts/lib/python.mjs';
import { run } from '../../scripts/lib/run.mjs';
import { available } from '../fixtures/available.js';
import { ort } from '../fixtures/engine.js';

const scripts = at('test', 'generators', 'contrib');
const packages = [
  'lightgbm==4.7.0',
  'numpy==2.4.6',
  'onnx==1.23.2',
  'onnxmltools==1.16.0',
  'packaging==26.4',
  'pandas==3.1.1',
  'scikit-learn==1.9.1',
  'skl2onnx==1.20.0',
  'xgboost-cpu==3.2.0',
];

interface Input {
  name: string;
  /** Of a tensor; or `map`, whose data is its entries. */
  type: string;
  dims: number[];
  data: (number | string | null)[] | [string | number, number][];
}

interface Case {
  name: string;
  kind: 'numbers' | 'text' | 'categories' | 'boosted';
  inputs: Input[];
  /** What the original's predict gives; null for regressors and transformers. */
  labels: (number | string)[] | null;
  scores: number[];
  tolerance: number;
  zipped: boolean;
}

/** The models and their originals' answers, made once. */
async function models(python: string): Promise<string> {
  const print = createHash('sha256').update(packages.join());
  const names = readdirSync(scripts).filter((name) => /^(make_)?ml_.*\.py$/.test(name));
  for (const name of names.sort()) print.update(readFileSync(join(scripts, name)));
  return folderOnce(cachePath('ml-converters', print.digest('hex').slice(0, 16)), async (temporary) => {
    await run(python, ['-B', join(scripts, 'make_ml_models.py'), temporary]);
  });
}

function feed({ type, dims, data }: Input): unknown {
  if (type === 'map') return new Map(data as [string | number, number][]);
  if (type === 'string') return new ort.Tensor('string', data, dims);
  if (type === 'int64') return new ort.Tensor('int64', BigInt64Array.from(data as number[], BigInt), dims);
  const numbers = (data as (number | null)[]).map((value) => value ?? NaN);
  return new ort.Tensor(type, type === 'float64' ? Float64Array.from(numbers) : Float32Array.from(numbers), dims);
}

type Scores = { data: ArrayLike<number> } | Scores[] | Map<unknown, number>;

/** The numbers of a tensor, of a sequence of tensors or of maps in the order of their keys. */
function flat(scores: Scores): number[] {
  if (Array.isArray(scores)) return scores.flatMap(flat);
  return scores instanceof Map ? [...scores.values()] : Array.from(scores.data);
}

/** The largest difference, relative to what is expected where that is above 1; both NaN are alike. */
function worst(given: number[], expected: number[]): number {
  return given.reduce((most, score, i) => {
    const wanted = expected[i]!;
    if (Number.isNaN(wanted) && Number.isNaN(score)) return most;
    const difference = Math.abs(score - wanted) / Math.max(1, Math.abs(wanted));
    return difference > most || Number.isNaN(difference) ? difference : most;
  }, 0);
}

async function check(folder: string, item: Case): Promise<void> {
  const session = await ort.InferenceSession.create(join(folder, `${item.name}.onnx`), { logSeverityLevel: 3 });
  try {
    const results = await session.run(Object.fromEntries(item.inputs.map((input) => [input.name, feed(input)])));
    const outputs = session.outputNames.map((name: string) => results[name]);
    if (item.labels !== null) {
      const labels = Array.from(outputs.shift().data as ArrayLike<bigint | string>, (label) =>
        typeof label === 'bigint' ? Number(label) : label,
      );
      expect(labels).toEqual(item.labels);
    }
    if (item.scores.length === 0) return;
    if (item.zipped) expect(outputs[0][0]).toBeInstanceOf(Map);
    const scores = flat(outputs[0]);
    expect(scores.length).toBe(item.scores.length);
    expect(worst(scores, item.scores)).toBeLessThanOrEqual(item.tolerance);
  } finally {
    await session.release();
  }
}

describe('models converted from scikit-learn, XGBoost and LightGBM', () => {
  it(
    'answer as their originals do',
    async (context) => {
      const python = await available(context, "the converters' Python packages", () => pythonEnvironment(packages));
      const folder = await models(python);
      const cases = JSON.parse(readFileSync(join(folder, 'cases.json'), 'utf8')) as Case[];
      const count = (kind: Case['kind']) => cases.filter((item) => item.kind === kind).length;
      expect(count('numbers')).toBeGreaterThanOrEqual(50);
      expect(count('text')).toBeGreaterThanOrEqual(8);
      expect(count('categories')).toBeGreaterThanOrEqual(14);
      expect(count('boosted')).toBeGreaterThanOrEqual(18);
      const wrong: string[] = [];
      for (const item of cases) {
        await check(folder, item).catch((error: Error) => wrong.push(`${item.name}: ${error.message}`));
      }
      expect(wrong).toEqual([]);
    },
    10 * 60_000,
  );
});
