// Shapes over symbols are inferred for every architecture and say all that inference says, at other sizes too.
import { describe, it } from 'vitest';
import { engineName } from '../../scripts/lib/engine.mjs';
import { architecture, checks } from '../../bench/architectures/workloads.mjs';
import { withEngine } from './agreement.js';

const minutes = 60_000;
const extra = { session: { check_symbolic_shapes: 'complete' } };

describe.skipIf(engineName() !== 'infernode').each(checks)('$name', ({ model, inputs }) => {
  it(
    'has the shapes by substitution that it has by inference',
    async () => {
      const path = await architecture(model);
      await withEngine('infernode', {}, async (engine) => {
        for (const graphOptimizationLevel of ['disabled', 'all']) {
          const { id } = await engine.create(path, { logSeverityLevel: 3, graphOptimizationLevel, extra });
          await engine.run(id, inputs(1));
          await engine.release(id);
        }
      });
    },
    10 * minutes,
  );
});
