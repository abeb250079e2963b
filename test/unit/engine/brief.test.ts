import { describe, expect, it } from 'vitest';
import { floats, ort } from '../../fixtures/engine.js';
import { model, node, type TensorInfo } from '../../fixtures/onnx-writer.js';

const { InferenceSession, Tensor } = ort;
const info = (type: TensorInfo['type'], name: string, shape: TensorInfo['shape']): TensorInfo => ({
  name,
  type,
  shape,
});
const square = ['n', 'n'];

/** Runs of x one after another until the result is `to`. */
const chain = (op: string, count: number, to: string, inputs = (from: string) => [from, 'x']) =>
  Array.from({ length: count }, (_, i) =>
    node(op, inputs(i === 0 ? 'x' : `${to}${i}`), [i === count - 1 ? to : `${to}${i + 1}`]),
  );

/** a = -x, and y by one branch of little work or another of `work` products. */
function choice(work: number): Uint8Array {
  const short = { nodes: [node('Neg', ['x'], ['u'])], inputs: [], outputs: [info('float32', 'u', square)] };
  const long = { nodes: chain('MatMul', work, 'v'), inputs: [], outputs: [info('float32', 'v', square)] };
  return model({
    nodes: [
      node('Neg', ['x'], ['a']),
      node('If', ['c'], ['y'], { attributes: { then_branch: short, else_branch: long } }),
    ],
    inputs: [info('bool', 'c', []), info('float32', 'x', square)],
    outputs: [info('float32', 'a', square), info('float32', 'y', square)],
  });
}

/** y = x plus as many draws of one seed as `n` says. */
function draws(): Uint8Array {
  const body = {
    nodes: [
      node('Identity', ['c'], ['d']),
      node('RandomUniformLike', ['v'], ['r'], { attributes: { seed: 3 } }),
      node('Add', ['v', 'r'], ['w']),
    ],
    inputs: [info('int64', 'i', []), info('bool', 'c', []), info('float32', 'v', [4])],
    outputs: [info('bool', 'd', []), info('float32', 'w', [4])],
  };
  return model({
    nodes: [node('Loop', ['n', 'go', 'x'], ['y'], { attributes: { body } })],
    inputs: [info('int64', 'n', []), info('float32', 'x', [4])],
    outputs: [info('float32', 'y', [4])],
    initializers: [{ name: 'go', type: 'bool', dims: [], data: Uint8Array.of(1) }],
  });
}

const feeds = (c: boolean, n = 32) => ({
  c: new Tensor('bool', Uint8Array.of(Number(c)), []),
  x: floats(new Array(n * n).fill(1 / n), [n, n]),
});
const rounds = (n: number) => ({ n: new Tensor('int64', BigInt64Array.of(BigInt(n)), []), x: floats([1, 2, 3, 4]) });

/** A run, and whether it was over when the call returned: work of another thread is heard of after all microtasks. */
async function whereRuns(session: any, inputs: any, fetches?: any): Promise<{ here: boolean; result: any }> {
  let here = false;
  const running = session.run(inputs, fetches);
  running.then(
    () => (here = true),
    () => (here = true),
  );
  for (let i = 0; i < 50; i++) await null;
  const settled = here;
  return { here: settled, result: await running };
}

/** Runs until one is over when the call returns; a machine that is busy needs more of them. */
async function expectHere(session: any, inputs: any): Promise<any> {
  for (let i = 0; i < 500; i++) {
    const { here, result } = await whereRuns(session, inputs);
    if (here) return result;
  }
  throw new Error('no run stayed on the calling thread');
}

describe('a run that was short before', () => {
  it('leaves the calling thread where a branch was never taken', async () => {
    const session = await InferenceSession.create(choice(2));
    await expectHere(session, feeds(true));
    const { here, result } = await whereRuns(session, feeds(false));
    expect(here).toBe(false);
    const again = await expectHere(session, feeds(false));
    expect(again.y.data).toEqual(result.y.data);
    expect(result.y.data).toEqual(session.runSync(feeds(false)).y.data);
    await session.release();
  });

  it('leaves the calling thread where a branch takes long', async () => {
    const session = await InferenceSession.create(choice(2000));
    await session.run(feeds(false));
    for (let i = 0; i < 3; i++) {
      await expectHere(session, feeds(true));
      expect((await whereRuns(session, feeds(false))).here).toBe(false);
    }
    await session.release();
  });

  it('leaves the calling thread where a loop goes on for longer', async () => {
    const session = await InferenceSession.create(draws());
    await expectHere(session, rounds(1));
    const { here, result } = await whereRuns(session, rounds(20_000));
    expect(here).toBe(false);
    expect(result.y.data).toEqual(session.runSync(rounds(20_000)).y.data);
    expect((await expectHere(session, rounds(2))).y.data).toEqual(session.runSync(rounds(2)).y.data);
    await session.release();
  });

  it('stays where copies of its inputs would hold the calling thread about as long', async () => {
    const count = 1 << 23;
    const session = await InferenceSession.create(
      model({
        nodes: [node('ReduceMax', ['x'], ['y'])],
        inputs: [info('float32', 'x', ['n'])],
        outputs: [info('float32', 'y', [1])],
      }),
    );
    const x = new Tensor(
      'float32',
      Float32Array.from({ length: count }, (_, i) => i % 1000),
      [count],
    );
    expect([...(await expectHere(session, { x })).y.data]).toEqual([999]);
    await session.release();
  });

  it('writes preallocated outputs once, when it is over', async () => {
    const session = await InferenceSession.create(choice(2));
    await expectHere(session, feeds(true, 2));
    const target = () => new Tensor('float32', new Float32Array(4).fill(7), [2, 2]);
    const [a, y] = [target(), target()];
    const running = session.run(feeds(false, 2), { a, y });
    expect([...a.data, ...y.data]).toEqual(new Array(8).fill(7));
    const result = await running;
    expect([result.a, result.y]).toEqual([a, y]);
    expect(result.a).toBe(a);
    expect([...a.data]).toEqual([-0.5, -0.5, -0.5, -0.5]);
    expect([...y.data]).toEqual([0.5, 0.5, 0.5, 0.5]);
    await session.release();
  });

  it('may write over what it reads', async () => {
    const session = await InferenceSession.create(choice(2));
    await expectHere(session, feeds(true, 2));
    for (const c of [false, true, false, true]) {
      const { c: condition, x } = feeds(c, 2);
      const result = await session.run({ c: condition, x }, { a: x, y: null });
      expect(result.a).toBe(x);
      expect([...x.data]).toEqual([-0.5, -0.5, -0.5, -0.5]);
      expect([...result.y.data]).toEqual(new Array(4).fill(c ? -0.5 : 0.5));
    }
    await session.release();
  });

  it('uses engine memory as any other', async () => {
    const session = await InferenceSession.create(choice(2));
    await expectHere(session, feeds(true, 2));
    const binding = session.createIoBinding();
    const state = session.allocate('float32', [2, 2]);
    state.setData(new Float32Array(4).fill(0.5));
    binding.bindInput('x', state).bindOutput('a', state).bindOutput('y');
    for (const [i, c] of [true, false, true, false].entries()) {
      binding.bindInput('c', feeds(c).c);
      await session.run(binding);
      expect([...state.data]).toEqual(new Array(4).fill(i % 2 === 0 ? -0.5 : 0.5));
    }
    await session.release();
  });
});
