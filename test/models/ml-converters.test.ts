import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cachePath } from '../../scripts/lib/cache.mjs';
import { folderOnce } from '../../scripts/lib/download.mjs';
import { at } from '../../scripts/lib/project.mjs';
import { pythonEnvironment } from '../../scripts/lib/python.mjs';
import { run } from '../../scripts/lib/run.mjs';
import { available } from '../fixtures/available.js';
import { ort } from '../fixtures/engine.js';

const script = at('scripts', 'contrib', 'make_ml_models.py');
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

interface Case {
  name: string;
  inputs: { name: string; type: string; dims: number[]; data: (number | string | null)[] }[];
  /** What the original's predict gives; null for regressors and transformers. */
  labels: (number | string)[] | null;
  scores: number[];
  /** Scores of one row. */
  width: number;
  tolerance: number;
  zipped: boolean;
}

/** The models and their originals' answers, made once. */
async function models(python: string): Promise<string> {
  const print = createHash('sha256').update(packages.join()).update(readFileSync(script)).digest('hex').slice(0, 16);
  return folderOnce(cachePath('ml-converters', print), async (temporary) => {
    await run(python, [script, temporary]);
  });
}

function feed({ type, dims, data }: Case['inputs'][number]): unknown {
  if (type === 'string') return new ort.Tensor('string', data, dims);
  const numbers = data.map((value) => (value === null ? NaN : Number(value)));
  return new ort.Tensor(type, type === 'float64' ? Float64Array.from(numbers) : Float32Array.from(numbers), dims);
}

/** The scores of rows that are maps, in the order of their keys. */
const unzipped = (rows: Map<unknown, number>[]): number[] => rows.flatMap((row) => [...row.values()]);

async function check(folder: string, item: Case): Promise<void> {
  const session = await ort.InferenceSession.create(join(folder, `${item.name}.onnx`), { logSeverityLevel: 3 });
  try {
    const results = await session.run(Object.fromEntries(item.inputs.map((input) => [input.name, feed(input)])));
    const outputs = session.outputNames.map((name: string) => results[name]);
    if (item.labels !== null) {
      const labels = Array.from(outputs[0].data as ArrayLike<bigint | string>, (label) =>
        typeof label === 'bigint' ? Number(label) : label,
      );
      expect(labels).toEqual(item.labels);
    }
    const given = outputs[item.labels === null ? 0 : 1];
    if (item.zipped) expect(given[0]).toBeInstanceOf(Map);
    const scores = item.zipped ? unzipped(given) : Array.from(given.data as ArrayLike<number>);
    expect(scores.length).toBe(item.scores.length);
    const worst = scores.reduce((most, score, i) => {
      const expected = item.scores[i] as number;
      return Math.max(most, Math.abs(score - expected) / Math.max(1, Math.abs(expected)));
    }, 0);
    expect(worst).toBeLessThanOrEqual(item.tolerance);
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
      expect(cases.length).toBeGreaterThanOrEqual(40);
      const wrong: string[] = [];
      for (const item of cases) {
        await check(folder, item).catch((error: Error) => wrong.push(`${item.name}: ${error.message}`));
      }
      expect(wrong).toEqual([]);
    },
    10 * 60_000,
  );
});
