import { describe, expect, it } from 'vitest';
import { type EngineProcess, rungsOfMachine } from '../../scripts/lib/engine-process.mjs';
import { engineName } from '../../scripts/lib/engine.mjs';
import { peerFolder } from '../../scripts/lib/peer.mjs';
import { architecture, checks } from '../../bench/architectures/workloads.mjs';
import { available } from '../fixtures/available.js';
import { type Values, withEngine, worstError } from './agreement.js';

const minutes = 60_000;
const tolerance = 1e-4;
const seeds = [1, 2];

const cpus = ['baseline', 'avx2', 'avx512'];
const levels = ['disabled', 'all'];
// The first input is run at all twelve settings, the second at one per instruction set: a run of the large models on the
// baseline takes seconds, and all of this has to fit a quarter of an hour on two cores.
const threads = [1, 2];

async function answers(engine: EngineProcess, path: string, feeds: Values[], options: object): Promise<Values[]> {
  const { id } = await engine.create(path, { logSeverityLevel: 3, ...options });
  const results: Values[] = [];
  for (const inputs of feeds) results.push((await engine.run(id, inputs)) as Values);
  await engine.release(id);
  return results;
}

const rungs = rungsOfMachine();

describe.each(checks)('$name', ({ model, inputs }) => {
  it(
    'agrees with onnxruntime-node at every level, thread count and instruction set',
    async (context) => {
      await available(context, 'onnxruntime-node', peerFolder);
      const path = await architecture(model);
      const feeds = seeds.map((seed) => inputs(seed) as Values);
      const [expected, plain] = await withEngine('peer', {}, async (peer) => [
        await answers(peer, path, feeds, {}),
        await answers(peer, path, feeds, { graphOptimizationLevel: 'disabled' }),
      ]);
      // On inputs where the peer itself depends on the order of its sums, nothing could be said of another engine.
      expected!.forEach((values, i) => expect(worstError(plain![i]!, values).error).toBeLessThan(tolerance / 2));
      // Agreement means something only where the answer depends on the input.
      expect(worstError(expected![1]!, expected![0]!).error).toBeGreaterThan(100 * tolerance);

      const disagreements: string[] = [];
      const present = await rungs;
      for (const cpu of cpus) {
        if (!present.includes(cpu)) {
          console.log(`not run: this CPU lacks ${cpu}`);
          continue;
        }
        await withEngine(engineName(), { INFERNODE_CPU: cpu }, async (engine) => {
          for (const graphOptimizationLevel of levels) {
            for (const intraOpNumThreads of threads) {
              const given = graphOptimizationLevel === 'all' && intraOpNumThreads === 2 ? feeds : feeds.slice(0, 1);
              const results = await answers(engine, path, given, { graphOptimizationLevel, intraOpNumThreads });
              results.forEach((result, i) => {
                const { error, output } = worstError(result, expected![i]!);
                const setting = `${cpu}, level ${graphOptimizationLevel}, ${intraOpNumThreads} threads, input ${i + 1}`;
                if (!(error <= tolerance)) disagreements.push(`${setting}: ${error} in ${output}`);
              });
            }
          }
        });
      }
      expect(disagreements).toEqual([]);
    },
    10 * minutes,
  );
});
