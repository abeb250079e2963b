import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { failureOf, floats, ort, ours } from '../../fixtures/engine.js';
import { model, node, oneNode, type TensorInfo } from '../../fixtures/onnx-writer.js';

const { InferenceSession } = ort;
const info = (name: string, type: TensorInfo['type'], shape: TensorInfo['shape']): TensorInfo => ({
  name,
  type,
  shape,
});

/** y = Relu(x w), a fusion of two nodes for x [n, 4]. */
const bytes = model({
  nodes: [
    { ...node('MatMul', ['x', 'w'], ['product']), name: 'multiply' },
    { ...node('Relu', ['product'], ['y']), name: 'rectify' },
  ],
  inputs: [info('x', 'float32', ['n', 4])],
  outputs: [info('y', 'float32', ['n', 3])],
  initializers: [{ name: 'w', type: 'float32', dims: [4, 3], data: Float32Array.from({ length: 12 }, (_, i) => i) }],
});

describe.runIf(ours)('session.graph()', () => {
  it('has nodes, types, shapes, placement, estimated and measured memory', async () => {
    const session = await InferenceSession.create(bytes, { graphOptimizationLevel: 'disabled' });
    const { nodes, values, memory } = session.graph();
    const unknown = { estimatedBytes: 0, measured: undefined };
    expect(nodes).toEqual([
      { name: 'multiply', domain: '', opType: 'MatMul', provider: 'cpu', inputs: ['x', 'w'], outputs: ['product'], madeFrom: [], memory: unknown }, // prettier-ignore
      {
        name: 'rectify',
        domain: '',
        opType: 'Relu',
        provider: 'cpu',
        inputs: ['product'],
        outputs: ['y'],
        madeFrom: [],
        memory: unknown,
      },
    ]);
    expect(values.get('x')).toEqual({ name: 'x', type: 'float32', shape: ['n', 4], constantBytes: undefined });
    expect(values.get('product')).toMatchObject({ type: 'float32', shape: ['n', 3] });
    expect(memory).toMatchObject({ weightBytes: expect.any(Number), keptBytes: 0, arenaBytes: 0 });
    expect(memory.weightBytes).toBeGreaterThanOrEqual(48);
    await session.run({ x: floats(new Array(400).fill(1), [100, 4]) });
    const after = session.graph().memory;
    expect(after.arenaBytes).toBeGreaterThanOrEqual(100 * 3 * 4);
    expect(after.keptBytes).toBeGreaterThanOrEqual(after.arenaBytes);
    const estimated = { estimatedBytes: 100 * 3 * 4, measured: undefined };
    expect(session.graph().nodes.map((each: any) => each.memory)).toEqual([estimated, estimated]);
    await session.release();
    expect(await failureOf(() => session.graph())).toMatchObject({ code: 'DISPOSED' });
  });

  it('has the memory of each node as runs with a profile measured it', async () => {
    const sorted = model({
      nodes: [node('Relu', ['x'], ['r']), node('TopK', ['r', 'k'], ['y', 'i'])],
      inputs: [info('x', 'float32', ['n'])],
      outputs: [info('y', 'float32', ['m']), info('i', 'int64', ['m'])],
      initializers: [{ name: 'k', type: 'int64', dims: [1], data: BigInt64Array.of(1000n) }],
    });
    const session = await InferenceSession.create(sorted, { graphOptimizationLevel: 'disabled' });
    await profiled(session, async () => {
      await session.run({ x: floats(new Array(5000).fill(1)) });
      await session.run({ x: floats(new Array(4000).fill(1)) });
    });
    const [relu, top] = session.graph().nodes.map((each: any) => each.memory);
    expect(relu).toEqual({ estimatedBytes: 4000 * 4, measured: { outputBytes: 5000 * 4, scratchBytes: 0 } });
    expect(top.estimatedBytes).toBe(1000 * (4 + 8));
    expect(top.measured.outputBytes).toBe(1000 * (4 + 8));
    await session.release();
  });

  it('is of the graph that runs, and says what nodes were made of', async () => {
    const session = await InferenceSession.create(bytes);
    const { nodes } = session.graph();
    expect(nodes).toHaveLength(1);
    expect(nodes[0].madeFrom).toEqual(expect.arrayContaining(['multiply']));
    await session.release();
  });

  it('says which provider has a node', async () => {
    const session = await InferenceSession.create(bytes, {
      graphOptimizationLevel: 'disabled',
      executionProviders: [{ name: 'null', ops: ['Relu'] }, 'cpu'],
    });
    const providers = session.graph().nodes.map(({ opType, provider }: any) => [opType, provider]);
    expect(providers).toContainEqual(['MatMul', 'cpu']);
    expect(providers.some(([, provider]: string[]) => provider === 'null')).toBe(true);
    await session.release();
  });
});

describe.runIf(ours)('session.describe()', () => {
  it('is for people', async () => {
    const session = await InferenceSession.create(bytes, { graphOptimizationLevel: 'disabled' });
    const text = session.describe();
    expect(text).toMatch(/^Model '.*'.*IR version \d+, operator sets ai\.onnx \d+\n/);
    expect(text).toMatch(/\nInputs\n {2}x: float32\[n, 4\]\nOutputs\n {2}y: float32\[n, 3\]\nNodes that run: 2\n/);
    expect(text).toContain('\n  1 MatMul on cpu');
    expect(text).toMatch(/weights and other constants: \d+ bytes/);
    await session.release();
  });
});

describe.runIf(ours)('session.warmUp(shapes)', () => {
  let session: any;
  beforeAll(async () => {
    session = await InferenceSession.create(bytes);
  });

  it('runs each of the shapes on zeros', async () => {
    const kept = (): number => session.graph().memory.keptBytes;
    expect(kept()).toBe(0);
    await session.warmUp({ x: [2, 4] }, { n: 50 });
    expect(kept()).toBeGreaterThanOrEqual(50 * 3 * 4);
    const summary = await profiled(session, () => session.warmUp({ x: [2, 4] }, { n: 50 }));
    expect(summary.runs).toBe(2);
  });

  it('takes the sizes of free dims from the dims of one input', async () => {
    const info = (name: string): any => ({ name, type: 'float32', shape: ['batch', 'length'] });
    const two = await InferenceSession.create(oneNode('Add', [info('ids'), info('mask')], [info('y')]));
    await two.warmUp({ ids: [1, 8] });
    const error = await failureOf(() => two.warmUp({ idz: [1, 8] }));
    expect(error.message).toMatch(/'idz'\. Did you mean 'ids'\?$/);
    expect((await failureOf(() => two.warmUp({ tokens: 8 }))).message).toMatch(
      / are 'ids', 'mask', 'batch', 'length'\.$/,
    );
    expect((await failureOf(() => two.warmUp([{ ids: [1, 8] }] as any))).message).toMatch(
      /each set of shapes as an argument/,
    );
    await two.release();
  });

  it('names all dims that are missing, and refuses sizes that are none or contradict each other', async () => {
    const ids: any = { name: 'ids', type: 'float32', shape: ['batch', 'length'] };
    const two = await InferenceSession.create(oneNode('Neg', [ids], [{ ...ids, name: 'y' }]));
    expect((await failureOf(() => two.warmUp())).message).toBe(
      "input 'ids': 'shapes' does not tell its dims 'batch', 'length': give { batch: 1, length: 1 } or { 'ids': [dims] }.",
    );
    for (const batch of [-1, 1.5, Number.NaN]) {
      const wrong = await failureOf(() => two.warmUp({ batch, length: 8 }));
      expect(wrong).toBeInstanceOf(RangeError);
      expect(wrong.message).toBe(`'batch' must be a whole number from 0 on, got ${batch}.`);
    }
    const { message } = await failureOf(() => two.warmUp({ ids: [1, -8] }));
    expect(message).toBe("'ids': dims[1] must be a whole number from 0 on, got -8.");
    const apart = await failureOf(() => two.warmUp({ ids: [1, 8], length: 9 }));
    expect(apart).toBeInstanceOf(RangeError);
    expect(apart.message).toMatch(/contradicts itself: 'length' is 9, and 8 by/);
    await two.release();
  });

  it('needs no shapes where none are free', async () => {
    const fixed = await InferenceSession.create(bytes, { freeDimensionOverrides: { n: 3 } });
    await fixed.warmUp();
    await fixed.release();
  });

  it('says what is missing or not there', async () => {
    expect(await failureOf(() => session.warmUp())).toMatchObject({ code: 'INVALID_ARGUMENT', input: 'x' });
    for (const n of [2 ** 31, 2 ** 45]) {
      const failure = await failureOf(() => session.warmUp({ x: [n, 2 ** 6] }));
      expect(failure).toMatchObject({ code: 'OUT_OF_MEMORY', input: 'x' });
    }
    expect((await failureOf(() => session.warmUp({}))).message).toBe("input 'x': 'shapes' does not tell its dim 'n': give { n: 1 } or { 'x': [dims] }."); // prettier-ignore
    const error = await failureOf(() => session.warmUp({ m: 3 }));
    expect(error).toBeInstanceOf(RangeError);
    expect(error.message).toMatch(/no input and no free dim 'm'/);
    expect(await failureOf(() => session.warmUp({ x: [1, 5] }))).toMatchObject({ code: 'SHAPE_MISMATCH', input: 'x' });
    const none = await failureOf(() => session.warmUp({ x: null as any }));
    expect(none).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining("'x' must be an array") });
  });
});

/** The summary of a profile over the action, whose file is not kept. */
async function profiled(session: any, action: () => Promise<void>): Promise<any> {
  const folder = mkdtempSync(join(tmpdir(), 'infernode-inspect-'));
  const before = process.cwd();
  process.chdir(folder);
  try {
    session.startProfiling();
    await action();
    return session.endProfiling();
  } finally {
    process.chdir(before);
    rmSync(folder, { recursive: true });
  }
}
