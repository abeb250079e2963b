import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { difference } from '../../conformance/lib/compare.mjs';
import { listCases, readDataSets, suiteFolder } from '../../conformance/lib/suite.mjs';
import { available } from '../../fixtures/available.js';
import { ort } from '../../fixtures/engine.js';

// The upstream tests of the API run on this network.
describe('squeezenet', () => {
  it('gives the expected classes, a thousand times', async (context) => {
    const cases = listCases(await available(context, 'the conformance suite', suiteFolder));
    const item = cases.find(({ name }) => name === 'light_squeezenet')!;
    const session = await ort.InferenceSession.create(join(item.folder, 'model.onnx'));
    expect(session.inputNames).toEqual(['data_0']);
    expect(session.outputNames).toEqual(['softmaxout_1']);
    const [{ inputs, outputs }] = readDataSets(item) as [any];
    const { type, dims, data } = inputs.data_0;
    for (let i = 0; i < 1000; i++) {
      const { softmaxout_1 } = await session.run({ data_0: new ort.Tensor(type, data, dims) });
      expect(difference(softmaxout_1, outputs[0].value, { rtol: 1e-3, atol: 1e-7 })).toBeNull();
    }
    await session.release();
  }, 120_000);
});
