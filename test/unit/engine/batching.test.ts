import { beforeAll, describe, expect, it } from 'vitest';
import type * as Infernode from '../../../src/index.js';
import { failureOf, floats, ort, ours, tensor } from '../../fixtures/engine.js';
import { model, node, oneNode, type TensorInfo } from '../../fixtures/onnx-writer.js';

const { InferenceSession, createBatcher } = ort as typeof Infernode;
const info = (name: string, type: TensorInfo['type'], shape: TensorInfo['shape']): TensorInfo => ({
  name,
  type,
  shape,
});

/** y = table[ids] for ids [batch, length]; the table has ten rows of two. */
const lookUp = (): Uint8Array =>
  model({
    nodes: [node('Gather', ['table', 'ids'], ['y'])],
    inputs: [info('ids', 'int64', ['batch', 'length'])],
    outputs: [info('y', 'float32', ['batch', 'length', 2])],
    initializers: [
      { name: 'table', type: 'float32', dims: [10, 2], data: Float32Array.from({ length: 20 }, (_, i) => i) },
    ],
  });
const ids = (...values: number[]): any => tensor('int64', BigInt64Array.from(values, BigInt), [1, values.length]);
const rowsOf = (...values: number[]): number[] => values.flatMap((i) => [2 * i, 2 * i + 1]);

describe.runIf(ours)('createBatcher', () => {
  let session: any, table: any;
  beforeAll(async () => {
    session = await InferenceSession.create(oneNode('Neg', [info('x', 'float32', ['n', 3])], [info('y', 'float32', ['n', 3])])); // prettier-ignore
    table = await InferenceSession.create(lookUp());
  });
  const three = (...values: number[]): any => floats(values, [values.length / 3, 3]);

  it('merges concurrent calls and splits the answers', async () => {
    const batcher = createBatcher(session, { maxBatch: 8, maxDelayMs: 20 });
    const answers = await Promise.all([1, 2, 3, 4].map((i) => batcher.run({ x: three(i, i, i) })));
    expect(answers.map(({ y }: any) => [...y.data])).toEqual([1, 2, 3, 4].map((i) => [-i, -i, -i]));
    expect(batcher.stats).toEqual({ calls: 4, runs: 1, rows: 4 });
    const several = await Promise.all([
      batcher.run({ x: three(1, 2, 3, 4, 5, 6) }),
      batcher.run({ x: three(7, 8, 9) }),
    ]);
    expect(several.map(({ y }: any) => [y.dims, ...y.data])).toEqual([[[2, 3], -1, -2, -3, -4, -5, -6], [[1, 3], -7, -8, -9]]); // prettier-ignore
    await batcher.close();
    expect(await failureOf(() => batcher.run({ x: three(1, 2, 3) }))).toMatchObject({ code: 'DISPOSED' });
  });

  it('reads inputs at the call', async () => {
    const batcher = createBatcher(session);
    const x = three(1, 2, 3);
    const answer = batcher.run({ x });
    x.data.fill(9);
    expect([...((await answer) as any).y.data]).toEqual([-1, -2, -3]);
  });

  it('runs at most maxBatch rows at once, and a larger call alone', async () => {
    const batcher = createBatcher(session, { maxBatch: 4, maxDelayMs: 5 });
    await Promise.all(Array.from({ length: 10 }, () => batcher.run({ x: three(1, 2, 3) })));
    expect(batcher.stats.runs).toBeGreaterThanOrEqual(3);
    const large = (await batcher.run({ x: floats(new Array(30).fill(1), [10, 3]) })) as any;
    expect(large.y.dims).toEqual([10, 3]);
  });

  it('along another axis, of strings and of halves too', async () => {
    const wide = await InferenceSession.create(oneNode('Identity', [info('x', 'string', [2, 'n'])], [info('y', 'string', [2, 'n'])])); // prettier-ignore
    const batcher = createBatcher(wide, { axis: 1, maxDelayMs: 20 });
    const text = (...values: string[]): any => tensor('string', values, [2, values.length / 2]);
    const answers = await Promise.all([
      batcher.run({ x: text('a', 'b') }),
      batcher.run({ x: text('c', 'd', 'e', 'f') }),
    ]);
    expect(answers.map(({ y }: any) => y.data)).toEqual([
      ['a', 'b'],
      ['c', 'd', 'e', 'f'],
    ]);
    expect(batcher.stats.runs).toBe(1);
    const half = await InferenceSession.create(oneNode('Identity', [info('x', 'float16', ['n'])], [info('y', 'float16', ['n'])])); // prettier-ignore
    const halves = createBatcher(half, { maxDelayMs: 20 });
    const bits = (...values: number[]): any => tensor('float16', Uint16Array.from(values), [values.length]);
    const [first] = await Promise.all([halves.run({ x: bits(0x3c00) }), halves.run({ x: bits(0x4000, 0x4200) })]);
    expect([...new Uint16Array((first as any).y.data.buffer)]).toEqual([0x3c00]);
  });

  describe('errors stay with the caller that caused them', () => {
    it('where a run fails on its values', async () => {
      const batcher = createBatcher(table, { maxDelayMs: 20 });
      const calls = [ids(1), ids(99), ids(2), ids(3)].map((given) => batcher.run({ ids: given }));
      const [one, bad, two, three] = (await Promise.allSettled(calls)) as any[];
      expect([one, two, three].map(({ value }) => [...value.y.data])).toEqual([rowsOf(1), rowsOf(2), rowsOf(3)]);
      expect(bad).toMatchObject({ status: 'rejected', reason: { opType: 'Gather' } });
    });

    it('where its feeds are wrong, before they wait', async () => {
      const batcher = createBatcher(session, { maxDelayMs: 20 });
      const good = batcher.run({ x: three(1, 2, 3) });
      expect(await failureOf(() => batcher.run({}))).toMatchObject({ code: 'INVALID_ARGUMENT', input: 'x' });
      expect(await failureOf(() => batcher.run({ x: floats([1, 2], [1, 2]) }))).toMatchObject({ code: 'SHAPE_MISMATCH', input: 'x' }); // prettier-ignore
      expect(await failureOf(() => batcher.run({ x: tensor('int32', Int32Array.of(1, 2, 3), [1, 3]) }))).toMatchObject({ code: 'INVALID_ARGUMENT' }); // prettier-ignore
      expect([...((await good) as any).y.data]).toEqual([-1, -2, -3]);
      expect(batcher.stats).toEqual({ calls: 1, runs: 1, rows: 1 });
    });
  });

  it('has padding rules for sequences', async () => {
    const padding = { ids: { axis: 1, value: 7 } };
    const batcher = createBatcher(table, { maxDelayMs: 20, padding });
    const answers = await Promise.all([batcher.run({ ids: ids(1) }), batcher.run({ ids: ids(2, 3, 4) })]);
    expect(answers.map(({ y }: any) => [y.dims, [...y.data]])).toEqual([
      [[1, 1, 2], rowsOf(1)],
      [[1, 3, 2], rowsOf(2, 3, 4)],
    ]);
    expect(batcher.stats.runs).toBe(1);
    const kept = createBatcher(table, { maxDelayMs: 20, padding, unpadding: { y: { axis: 2, input: 'ids' } } });
    const [first] = (await Promise.all([kept.run({ ids: ids(1) }), kept.run({ ids: ids(2, 3) })])) as any[];
    expect([first.y.dims, [...first.y.data]]).toEqual([
      [1, 2, 1],
      [2, 14],
    ]); // the padding of 7 is there
    const apart = createBatcher(table, { maxDelayMs: 20 });
    await Promise.all([apart.run({ ids: ids(1) }), apart.run({ ids: ids(2, 3, 4) })]);
    expect(apart.stats.runs).toBe(2);
  });

  it('says which input was forgotten in the padding', async () => {
    const heard: string[] = [];
    const { env } = ort as typeof Infernode;
    env.onLog = ({ message }) => heard.push(message);
    const shape = ['batch', 'length'];
    const two = await InferenceSession.create(oneNode('Add', [info('ids', 'float32', shape), info('types', 'float32', shape)], [info('y', 'float32', shape)])); // prettier-ignore
    createBatcher(two, { padding: { ids: { axis: 1 }, types: { axis: 1 } } });
    expect(heard).toEqual([]);
    createBatcher(two, { padding: { ids: { axis: 1 } } });
    delete env.onLog;
    expect(heard).toEqual([expect.stringMatching(/lacks 'types', whose axis 1 is 'length' too: .* Add \{ 'types': \{ axis: 1 \} \}\.$/)]); // prettier-ignore
  });

  describe('has back-pressure and a queue limit', () => {
    it('that refuses one call too many, and tells when there is room', async () => {
      const batcher = createBatcher(session, { maxQueue: 2, maxBatch: 2, maxDelayMs: 30 });
      const calls = [three(1, 2, 3)].map((x) => batcher.run({ x }));
      calls.push(createBatcherCall(batcher));
      // two calls are a batch, so they run at once: the queue fills while the run is under way
      const more = [0, 1].map(() => createBatcherCall(batcher));
      expect(batcher.waiting).toBe(2);
      expect(await failureOf(() => createBatcherCall(batcher))).toMatchObject({ code: 'QUEUE_FULL' });
      await batcher.ready();
      expect(batcher.waiting).toBeLessThan(2);
      await Promise.all([...calls, ...more, createBatcherCall(batcher)]);
    });
    it('that who awaits ready() before each call does not meet', async () => {
      const batcher = createBatcher(session, { maxQueue: 3, maxDelayMs: 1, maxBatch: 1 });
      const client = async (): Promise<void> => {
        for (let i = 0; i < 3; i++) {
          await batcher.ready();
          await createBatcherCall(batcher);
        }
      };
      await Promise.all(Array.from({ length: 20 }, client));
      expect(batcher.stats.calls).toBe(60);
    });
    const createBatcherCall = (batcher: any): Promise<any> => batcher.run({ x: three(1, 2, 3) });
  });

  it('takes an AbortSignal and a timeout', async () => {
    const batcher = createBatcher(session, { maxDelayMs: 10_000 });
    const controller = new AbortController();
    const { signal } = controller;
    const calls = Array.from({ length: 20 }, () => failureOf(() => batcher.run({ x: three(1, 2, 3) }, { signal })));
    const late = failureOf(() => batcher.run({ x: three(1, 2, 3) }, { timeout: 20 }));
    await new Promise(setImmediate);
    expect(batcher.waiting).toBe(21);
    controller.abort('enough');
    expect(batcher.waiting).toBe(1);
    for (const call of calls)
      expect(await call).toMatchObject({ name: 'AbortError', code: 'ABORTED', cause: 'enough' });
    expect(await late).toMatchObject({ name: 'TimeoutError', code: 'ABORTED' });
    expect(batcher.stats.runs).toBe(0);
    expect(await failureOf(() => batcher.run({ x: three(1, 2, 3) }, { signal }))).toMatchObject({ code: 'ABORTED' });
    await batcher.close();
  });

  it('lets go of a run whose callers have all gone', async () => {
    const loop = await InferenceSession.create(endless());
    const batcher = createBatcher(loop, { maxDelayMs: 1 });
    const signal = AbortSignal.timeout(100);
    const errors = await Promise.all([1, 2].map(() => failureOf(() => batcher.run({ x: floats([1]) }, { signal }))));
    expect(errors.map(({ code }) => code)).toEqual(['ABORTED', 'ABORTED']);
    await batcher.close(); // would wait for ever for the run
  });

  it('refuses a model that has no rows to join, and wrong options', async () => {
    const fixed = await InferenceSession.create(oneNode('Neg', [info('x', 'float32', [1, 3])], [info('y', 'float32', [1, 3])])); // prettier-ignore
    expect(() => createBatcher(fixed)).toThrow(/input 'x' has a fixed size of 1 along axis 0/);
    for (const key of ['maxBatch', 'maxQueue', 'maxConcurrent'])
      for (const value of [-1, 0]) expect(() => createBatcher(session, { [key]: value })).toThrow(RangeError);
    for (const wrong of [undefined, null, 'model.onnx', {}] as any[])
      expect(() => createBatcher(wrong)).toThrow(/^A batcher is made for a session, got /);
    expect(() => createBatcher(Promise.resolve(session) as any)).toThrow(/await it first/);
    for (const axis of [0, 5]) expect(() => createBatcher(table, { padding: { ids: { axis } } })).toThrow(RangeError);
    expect(() => createBatcher(session, { maxBatch: 'all' as any })).toThrow(TypeError);
    expect(() => createBatcher(session, { padding: { z: { axis: 1 } } })).toThrow(/There is no input 'z'/);
    expect(() => createBatcher(session, { outputs: ['z'] })).toThrow(/There is no output 'z'/);
    expect(() => createBatcher(session, { outputs: [] })).toThrow(/'outputs' names no output/);
    for (const key of ['outputs', 'shared'])
      expect(() => createBatcher(session, { [key]: new Array(1) })).toThrow(/must be an array of names/);
  });

  it('joins only calls that share what is shared', async () => {
    const scaled = await InferenceSession.create(oneNode('Mul', [info('x', 'float32', ['n', 2]), info('s', 'float32', [1])], [info('y', 'float32', ['n', 2])])); // prettier-ignore
    const batcher = createBatcher(scaled, { shared: ['s'], maxDelayMs: 20 });
    const [s, other] = [floats([2]), floats([3])];
    const x = floats([1, 1], [1, 2]);
    const answers = await Promise.all([batcher.run({ x, s }), batcher.run({ x, s }), batcher.run({ x, s: other })]);
    expect(answers.map(({ y }: any) => y.data[0])).toEqual([2, 2, 3]);
    expect(batcher.stats.runs).toBe(2);
  });

  it('refuses what cannot be joined or cut, with a code', async () => {
    const packed = await InferenceSession.create(
      model({
        nodes: [node('Cast', ['x'], ['y'], { attributes: { to: 22n } })],
        inputs: [info('x', 'float32', ['n', 3])],
        outputs: [info('y', 'int4', ['n', 3])],
        opset: 21,
      }),
    );
    expect(await failureOf(async () => createBatcher(packed))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining("output 'y' is packed int4"),
    });
    const wrong: [given: any, options: any][] = [
      [undefined, {}],
      [Promise.resolve(session), {}],
      [table, { unpadding: { y: { axis: 1 } } }],
    ];
    for (const [given, options] of wrong) {
      const failure = await failureOf(async () => createBatcher(given, options));
      expect(failure).toMatchObject({ name: 'TypeError', code: 'INVALID_ARGUMENT' });
    }
    const batcher = createBatcher(session) as any;
    for (const args of [[undefined], [{ x: three(1, 2, 3) }, null], [{ x: three(1, 2, 3) }, ['y']]]) {
      const failure = await failureOf(() => batcher.run(...args));
      expect(failure).toMatchObject({ name: 'TypeError', code: 'INVALID_ARGUMENT' });
    }
  });

  it('refuses a model whose other axes bear the name of the rows', async () => {
    const turned = [info('x', 'float32', ['n', 'length'])];
    const inTime = await InferenceSession.create(oneNode('Transpose', turned, [info('y', 'float32', ['length', 'n'])]));
    expect(await failureOf(async () => createBatcher(inTime))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/^Calls cannot be joined: .* has '(n|length)' along axis 0, which is the size of axis 1 of .*'[xy]', too\.$/), // prettier-ignore
    });
    const square = await InferenceSession.create(oneNode('Neg', [info('x', 'float32', ['n', 'n'])], [info('y', 'float32', ['n', 'n'])])); // prettier-ignore
    expect(await failureOf(async () => createBatcher(square))).toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  it('refuses a model whose rows come to lie elsewhere, whatever the model calls them', async () => {
    const sizes = (name: string, ...shape: string[]): TensorInfo => info(name, 'float32', shape);
    const two = [info('x', 'float32', ['n', 3]), info('z', 'float32', ['m', 3])];
    const models: [bytes: Uint8Array, axis: number, refused: RegExp | undefined][] = [
      [oneNode('Transpose', [sizes('x', 'n', 'length')], [sizes('y', 'a', 'b')]), 0, /'y' has along axis 0 another size than the rows/], // prettier-ignore
      [
        oneNode('Transpose', [sizes('x', '', '')], [sizes('y', '', '')]),
        0,
        /'y' has along axis 0 a size of which nothing says/,
      ],
      [oneNode('Concat', [sizes('x', 'n')], [sizes('y', 'a')], { attributes: { axis: 0n } }), 0, undefined],
      [model({ nodes: [node('Concat', ['x', 'x'], ['y'], { attributes: { axis: 0n } })], inputs: [sizes('x', 'n')], outputs: [sizes('y', 'a')] }), 0, /another size/], // prettier-ignore
      [model({ nodes: [node('NonZero', ['x'], ['y'])], inputs: [info('x', 'float32', [1, 'n'])], outputs: [info('y', 'int64', [2, 'found'])] }), 1, /nothing says/], // prettier-ignore
      [oneNode('Neg', [sizes('x', 'n', '')], [sizes('y', 'a', 'b')]), 0, undefined],
      [oneNode('Neg', [sizes('x', '')], [sizes('y', '')]), 0, undefined],
      [oneNode('Add', two, [info('y', 'float32', ['k', 3])]), 0, undefined], // which have equally many rows
      [oneNode('Concat', two, [info('y', 'float32', ['k', 6])], { attributes: { axis: 1n } }), 0, undefined],
      [oneNode('Concat', two, [info('y', 'float32', ['k', 3])], { attributes: { axis: 0n } }), 0, /another size/],
    ];
    for (const [bytes, axis, refused] of models) {
      const made = await InferenceSession.create(bytes);
      if (refused === undefined) createBatcher(made, { axis });
      else expect(await failureOf(async () => createBatcher(made, { axis }))).toMatchObject({ code: 'INVALID_ARGUMENT', output: 'y', message: expect.stringMatching(refused) }); // prettier-ignore
    }
    const released = await InferenceSession.create(models[6]![0]);
    await released.release();
    expect(await failureOf(async () => createBatcher(released))).toMatchObject({ code: 'DISPOSED' });
  });

  it('pads no call that is wrong by itself', async () => {
    const shape = ['batch', 'length'];
    const two = await InferenceSession.create(oneNode('Add', [info('ids', 'float32', shape), info('mask', 'float32', shape)], [info('y', 'float32', shape)])); // prettier-ignore
    const batcher = createBatcher(two, { maxDelayMs: 20, padding: { ids: { axis: 1 }, mask: { axis: 1 } } });
    const [wrong, right] = await Promise.all([
      failureOf(() => batcher.run({ ids: floats([1, 2, 3], [1, 3]), mask: floats([1, 1], [1, 2]) })),
      batcher.run({ ids: floats([1, 2, 3], [1, 3]), mask: floats([1, 1, 1], [1, 3]) }),
    ]);
    expect(wrong).toMatchObject({ code: 'SHAPE_MISMATCH', input: 'mask', expected: '3', actual: '2' });
    expect([...(right as any).y.data]).toEqual([2, 3, 4]);
  });

  it('refuses rules that cannot be right', async () => {
    const padding = { ids: { axis: 1 } };
    const wrong = [
      { padding: { ids: { axis: 0 } } },
      { padding: { ids: { axis: 2 } } },
      { padding: { ids: { axis: 1, value: 1.5 } } },
      { padding: { ids: { axis: 1, value: 'abc' } } },
      { padding: { ids: { axis: 1, value: 2n ** 64n } } },
      { padding, unpadding: { y: { axis: 0, input: 'ids' } } },
      { padding, unpadding: { y: { axis: 3, input: 'ids' } } },
      { maxDelayMs: 2 ** 31 },
    ];
    for (const options of wrong) {
      const failure = await failureOf(async () => createBatcher(table, options));
      expect(
        failure,
        JSON.stringify(options, (_, v) => (typeof v === 'bigint' ? String(v) : v)),
      ).toMatchObject({
        name: 'RangeError',
        code: 'INVALID_ARGUMENT',
      });
    }
    createBatcher(table, { padding: { ids: { axis: 1, value: 9n } } });
  });

  it('waits for room until it is closed', async () => {
    const batcher = createBatcher(session, { maxQueue: 1, maxDelayMs: 60_000 });
    const first = batcher.run({ x: three(1, 2, 3) });
    const ready = batcher.ready();
    await batcher.close();
    await Promise.all([first, ready]);
  });

  it('hears what happens while it reads the feeds', async () => {
    const controller = new AbortController();
    const batcher = createBatcher(session);
    const during = (action: () => void): any =>
      Object.defineProperty({}, 'x', { enumerable: true, get: () => (action(), three(1, 2, 3)) });
    const aborted = batcher.run(during(() => controller.abort()), { signal: controller.signal }); // prettier-ignore
    expect(await failureOf(() => aborted)).toMatchObject({ code: 'ABORTED' });
    const closed = batcher.run(during(() => void batcher.close()));
    expect(await failureOf(() => closed)).toMatchObject({ code: 'DISPOSED' });
  });

  it('keeps no timer when its last call has left', async () => {
    const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    const controller = new AbortController();
    const batcher = createBatcher(session, { maxDelayMs: 60_000 });
    const answer = batcher.run({ x: three(1, 2, 3) }, { signal: controller.signal });
    await Promise.resolve();
    expect(timers()).toBe(before + 1);
    controller.abort();
    expect(await failureOf(() => answer)).toMatchObject({ code: 'ABORTED' });
    expect(timers()).toBe(before);
  });

  it('takes feeds whose data goes on, alone and joined', async () => {
    const batcher = createBatcher(session);
    const x: any = { type: 'float32', dims: [1, 3], data: Float32Array.of(1, 2, 3, 4), location: 'cpu' };
    for (const count of [1, 2]) {
      const answers = await Promise.all(Array.from({ length: count }, () => batcher.run({ x })));
      for (const answer of answers) expect([...(answer as any).y.data]).toEqual([-1, -2, -3]);
    }
  });

  it('takes any name', async () => {
    const odd = await InferenceSession.create(
      oneNode('Neg', [info('__proto__', 'float32', ['n'])], [info('constructor', 'float32', ['n'])]),
    );
    const feeds = Object.fromEntries([['__proto__', floats([1], [1])]]);
    const answer = (await createBatcher(odd).run(feeds)) as any;
    expect(Object.keys(answer)).toEqual(['constructor']);
    const other = await InferenceSession.create(
      oneNode('Neg', [info('x', 'float32', ['n'])], [info('__proto__', 'float32', ['n'])]),
    );
    expect(Object.keys(await createBatcher(other).run({ x: floats([1], [1]) }))).toEqual(['__proto__']);
  });
});

/** y = x after a loop that does not end. */
function endless(): Uint8Array {
  const body = {
    nodes: [node('Identity', ['c'], ['co']), node('Add', ['w', 'w'], ['wo'])],
    inputs: [info('i', 'int64', []), info('c', 'bool', []), info('w', 'float32', ['n'])],
    outputs: [info('co', 'bool', []), info('wo', 'float32', ['n'])],
  };
  return model({
    nodes: [node('Loop', ['', 'go', 'x'], ['y'], { attributes: { body } })],
    inputs: [info('x', 'float32', ['n'])],
    outputs: [info('y', 'float32', ['n'])],
    initializers: [{ name: 'go', type: 'bool', dims: [], data: Uint8Array.of(1) }],
  });
}
