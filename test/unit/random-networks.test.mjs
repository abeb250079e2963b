import { describe, expect, it } from 'vitest';
import { families } from '../../bench/random/networks.mjs';
import { network, randomWorkloads } from '../../bench/random/random.mjs';
import { operations, slowNodes } from '../../bench/random/slow-nodes.mjs';
import { loadEngine } from '../../scripts/lib/engine.mjs';

const count = Object.keys(families).length;

describe('random networks', () => {
  it('are the same for the same seed, and others for another', () => {
    for (let i = 0; i < count; i++) {
      const [{ file, ...one }, { file: again, ...other }] = [network(3, i), network(3, i)];
      expect(one).toEqual(other);
      expect(file.equals(again)).toBe(true);
      expect(network(4, i).file.equals(file)).toBe(false);
    }
  });

  it.each(Array.from({ length: 2 * count }, (_, i) => [network(7, i).name, i]))(
    'load and give a finite result of the dims that they were written with: %s',
    async (_, i) => {
      const { file, inputs } = network(7, i);
      const { InferenceSession, Tensor } = await loadEngine();
      const session = await InferenceSession.create(file);
      const feeds = Object.entries(inputs).map(([name, dims]) => {
        const data = Float32Array.from({ length: dims.reduce((a, b) => a * b, 1) }, (_, k) => Math.sin(k));
        return [name, new Tensor('float32', data, dims)];
      });
      const [result] = Object.values(await session.run(Object.fromEntries(feeds)));
      expect(result.dims).toEqual(session.outputMetadata[0].shape);
      expect(result.data.every(Number.isFinite)).toBe(true);
      expect(result.data.some((x) => x !== result.data[0])).toBe(true);
      await session.release();
    },
  );

  it('name the nodes that their time goes to, with what each does of what it could', async () => {
    const [workload] = randomWorkloads(7, 1);
    const nodes = await slowNodes(await workload.path(), workload.inputs(1), {
      sessionOptions: { intraOpNumThreads: 1 },
      flops: 1e12,
      bytes: 1e10,
      runs: 2,
    });
    expect(nodes.length).toBeGreaterThan(0);
    for (const node of nodes) {
      expect(node.microseconds).toBeGreaterThanOrEqual(0);
      expect(node.roof).toBeGreaterThan(0);
    }
    expect(nodes.some(({ opType, bound }) => /Conv/.test(opType) && bound === 'arithmetic')).toBe(true);
  });

  it.each([
    [
      'Conv',
      [
        [1, 8, 10, 10],
        [16, 4, 3, 3],
      ],
      [1, 16, 10, 10],
      2 * 1600 * 36,
    ],
    [
      'ConvTranspose',
      [
        [1, 8, 5, 5],
        [8, 2, 4, 4],
      ],
      [1, 2, 10, 10],
      2 * 200 * 32,
    ],
    [
      'FusedMatMul',
      [
        [3, 5, 7],
        [7, 2],
      ],
      [3, 5, 2],
      2 * 30 * 7,
    ],
    ['Add', [[3]], [3], undefined],
    [
      'MatMul',
      [
        ['n', 7],
        [7, 2],
      ],
      ['n', 2],
      undefined,
    ],
  ])('count the operations of %s', (opType, inputs, output, wanted) => {
    const values = inputs.map((shape) => ({ shape }));
    expect(operations(opType, values, { shape: output })).toBe(wanted);
  });
});
