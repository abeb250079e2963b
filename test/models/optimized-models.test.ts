// A model saved by `optimizedModelFilePath` is for other runtimes too.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { engineName } from '../../scripts/lib/engine.mjs';
import { peerFolder } from '../../scripts/lib/peer.mjs';
import { architecture, checks } from '../../bench/architectures/workloads.mjs';
import { available } from '../fixtures/available.js';
import { type Values, withEngine, worstError } from './agreement.js';

const minutes = 60_000;
const folder = mkdtempSync(join(tmpdir(), 'infernode-'));
afterAll(() => rmSync(folder, { recursive: true }));

// Convolutions, attention with its masks, recurrences: between them they meet most fusions.
const saved = (checks as (Omit<(typeof checks)[number], 'model'> & { model: string })[]).filter(({ model }) =>
  ['mobilenet_v2', 'minilm_l6', 'rnn_tagger'].includes(model),
);

describe.each(saved)('$name, optimized', ({ model, inputs }) => {
  it.for(['basic', 'all'])(
    'at level %s is loaded by onnxruntime-node and answers alike',
    { timeout: 5 * minutes },
    async (graphOptimizationLevel, context) => {
      await available(context, 'onnxruntime-node', peerFolder);
      const path = await architecture(model);
      const optimizedModelFilePath = join(folder, `${model}-${graphOptimizationLevel}.onnx`);
      await withEngine(engineName(), {}, async (engine) => {
        await engine.create(path, { logSeverityLevel: 3, graphOptimizationLevel, optimizedModelFilePath });
      });
      await withEngine('peer', {}, async (peer) => {
        const feeds = inputs(1) as Values;
        const answers: Values[] = [];
        for (const file of [path, optimizedModelFilePath]) {
          const { id } = await peer.create(file, { logSeverityLevel: 3 });
          answers.push((await peer.run(id, feeds)) as Values);
        }
        expect(worstError(answers[1]!, answers[0]!).error).toBeLessThan(1e-5);
      });
    },
  );
});
