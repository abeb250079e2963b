import { expect, it } from 'vitest';
import { engineName } from '../../scripts/lib/engine.mjs';
import { available } from '../fixtures/available.js';
import { judgeAll, tally } from './lib/judge.mjs';
import { listCases, suiteFolder } from './lib/suite.mjs';

const minutes = 60_000;

// onnxruntime-node answers some cases wrongly; the bound of zero is ours alone.
const engine = engineName();

it(
  'answers no case of the ONNX backend test suite wrongly and at least 1000 rightly',
  async (context) => {
    const suite = await available(context, 'the conformance suite', suiteFolder);
    const cases = listCases(suite);
    expect(cases.length).toBe(2036);
    const results = await judgeAll(cases, { engine, session: { logSeverityLevel: 4 } });
    const wrong = results.filter(({ outcome }) => outcome === 'failed').map(({ name, reason }) => `${name}: ${reason}`);
    if (engine === 'infernode') expect(wrong).toEqual([]);
    expect(tally(results).passed).toBeGreaterThanOrEqual(1000);
  },
  10 * minutes,
);

it(
  'answers no case wrongly with the graph left as it is',
  async (context) => {
    const suite = await available(context, 'the conformance suite', suiteFolder);
    const extra = { session: { check_symbolic_shapes: '1' } }; // shapes over symbols, against those of other sizes too
    const session = { logSeverityLevel: 4, graphOptimizationLevel: 'disabled', intraOpNumThreads: 1, extra };
    const results = await judgeAll(listCases(suite), { engine, session });
    const wrong = results.filter(({ outcome }) => outcome === 'failed').map(({ name, reason }) => `${name}: ${reason}`);
    if (engine === 'infernode') expect(wrong).toEqual([]);
    expect(tally(results).passed).toBeGreaterThanOrEqual(1000);
  },
  10 * minutes,
);
