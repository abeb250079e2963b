import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cachePath } from '../../scripts/lib/cache.mjs';
import { folderOnce } from '../../scripts/lib/download.mjs';
import { engineName } from '../../scripts/lib/engine.mjs';
import { peerSaturates } from '../../scripts/lib/peer.mjs';
import { at } from '../../scripts/lib/project.mjs';
import { onnxTools, pythonEnvironment } from '../../scripts/lib/python.mjs';
import { run } from '../../scripts/lib/run.mjs';
import { judgeAll, tally } from '../conformance/lib/judge.mjs';
import { listCases } from '../conformance/lib/suite.mjs';
import { available } from '../fixtures/available.js';

const minutes = 60_000;
const scripts = at('test', 'generators', 'contrib');

/** The cases with onnxruntime's answers, made on first use and again when a script has changed. */
async function contribCases(): Promise<string> {
  const print = createHash('sha256').update(onnxTools.join());
  for (const name of readdirSync(scripts)
    .filter((entry) => entry.endsWith('.py') && !entry.includes('ml_'))
    .sort())
    print.update(readFileSync(join(scripts, name)));
  const python = await pythonEnvironment(onnxTools);
  return folderOnce(cachePath('contrib', print.digest('hex').slice(0, 16)), async (folder) => {
    await run(python, [join(scripts, 'make_cases.py'), folder]);
  });
}

/** Names of cases of uint8 codes and int8 weights. */
const ofInt8 = /_s8$|_dynamic_int8$/;

describe("com.microsoft's operators", () => {
  it.for([
    { name: 'optimized, with two threads', session: { graphOptimizationLevel: 'all', intraOpNumThreads: 2 } },
    { name: 'as they stand', session: { graphOptimizationLevel: 'disabled', intraOpNumThreads: 1 } },
  ])('answer as those of onnxruntime do: $name', { timeout: 10 * minutes }, async ({ session }, context) => {
    const folder = await available(context, 'onnxruntime for Python', contribCases);
    const cases = listCases(folder);
    expect(cases.length).toBeGreaterThan(505);
    const comparable = cases.filter(({ name }) => !(peerSaturates && ofInt8.test(name)));
    if (comparable.length < cases.length)
      console.log(`not run: ${cases.length - comparable.length} cases of int8 weights, whose sums saturate in onnxruntime on this CPU`); // prettier-ignore
    const results = await judgeAll(comparable, { engine: engineName(), session: { logSeverityLevel: 4, ...session } });
    const wrong = results
      .filter(({ outcome }) => outcome !== 'passed')
      .map(({ kind, name, reason }) => `${kind}/${name}: ${reason}`);
    if (engineName() === 'infernode') expect(wrong).toEqual([]);
    expect(tally(results).passed).toBeGreaterThan(0);
  });
});
