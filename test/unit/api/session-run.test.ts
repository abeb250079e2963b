import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectFailure, floats, ort, ours, tensor } from '../../fixtures/engine.js';
import { add, addAndMultiply, identity, matmul } from '../../fixtures/models.js';

const { InferenceSession, Tensor } = ort;

let session: any;
const feeds = () => ({ a: floats([1, 2, 3, 4], [2, 2]), b: floats([5, 6, 7, 8], [2, 2]) });
const sum = [6, 8, 10, 12];
const product = [5, 12, 21, 32];

beforeAll(async () => {
  session = await InferenceSession.create(addAndMultiply());
});
afterAll(() => session.release());

describe('a run', () => {
  it('answers every output, in the order of the model', async () => {
    const results = await session.run(feeds());
    expect(Object.keys(results)).toEqual(['sum', 'product']);
    expect(results.sum).toBeInstanceOf(Tensor);
    expect(results.sum).toMatchObject({ type: 'float32', dims: [2, 2], size: 4, location: 'cpu' });
    expect([...results.sum.data]).toEqual(sum);
    expect([...results.product.data]).toEqual(product);
    expect(Object.getPrototypeOf(results)).toBe(Object.prototype);
  });

  it('answers the outputs that an array names, in the order of the model', async () => {
    expect(Object.keys(await session.run(feeds(), ['product']))).toEqual(['product']);
    expect(Object.keys(await session.run(feeds(), ['product', 'sum']))).toEqual(['sum', 'product']);
  });

  it('answers the outputs that an object names', async () => {
    const results = await session.run(feeds(), { product: null });
    expect(Object.keys(results)).toEqual(['product']);
    expect([...results.product.data]).toEqual(product);
  });

  it('takes a second object without output names as options', async () => {
    expect(Object.keys(await session.run(feeds(), {}))).toEqual(['sum', 'product']);
    expect(Object.keys(await session.run(feeds(), { wrongName: null }))).toEqual(['sum', 'product']);
    expect(Object.keys(await session.run(feeds(), { logSeverityLevel: 2, tag: 'x' }))).toEqual(['sum', 'product']);
    // @gutenye/ocr-node passes its session options here
    expect(Object.keys(await session.run(feeds(), { executionProviders: ['cpu'], unknown: 1 }))).toHaveLength(2);
  });

  it('writes into a tensor that fetches give', async () => {
    const target = floats([0, 0, 0, 0], [2, 2]);
    const results = await session.run(feeds(), { sum: target });
    expect([...target.data]).toEqual(sum);
    expect([...results.sum.data]).toEqual(sum);
    if (ours) expect(results.sum).toBe(target);
  });

  it('ignores feeds that the model lacks', async () => {
    const results = await session.run({ ...feeds(), extra: floats([1]), more: 'not even a tensor' });
    expect([...results.sum.data]).toEqual(sum);
  });

  it('takes any object of the shape of a tensor', async () => {
    const like = { type: 'float32', dims: [2, 2], data: Float32Array.of(1, 2, 3, 4), location: 'cpu' };
    const results = await session.run({ a: like, b: like });
    expect([...results.sum.data]).toEqual([2, 4, 6, 8]);
  });

  it('takes a view into a larger buffer', async () => {
    const large = Float32Array.of(9, 9, 1, 2, 3, 4, 9);
    const results = await session.run({ ...feeds(), a: tensor('float32', large.subarray(2, 6), [2, 2]) });
    expect([...results.sum.data]).toEqual(sum);
  });

  it('takes another run’s output as input', async () => {
    const { sum: first } = await session.run(feeds());
    const second = await session.run({ a: first, b: first });
    expect([...second.sum.data]).toEqual(sum.map((value) => 2 * value));
  });

  it('goes on beside others of the same session', async () => {
    const runs = Array.from({ length: 20 }, (_, i) => session.run({ ...feeds(), a: floats([i, i, i, i], [2, 2]) }));
    (await Promise.all(runs)).forEach((results, i) => {
      expect([...results.sum.data]).toEqual([5 + i, 6 + i, 7 + i, 8 + i]);
    });
  });

  it('answers a thousand times alike', async () => {
    for (let i = 0; i < 1000; i++) expect([...(await session.run(feeds())).sum.data]).toEqual(sum);
  });

  it('takes tensors without elements', async () => {
    const products = await InferenceSession.create(matmul());
    const { c } = await products.run({ a: floats([], [2, 0]), b: floats([], [0, 3]) });
    expect(c.dims).toEqual([2, 3]);
    expect([...c.data]).toEqual([0, 0, 0, 0, 0, 0]);
    const none = await products.run({ a: floats([], [0, 2]), b: floats([1, 2], [2, 1]) });
    expect(none.c.dims).toEqual([0, 1]);
    await products.release();
  });

  it('takes one element where the model declares a scalar', async () => {
    const scalar = await InferenceSession.create(identity('int64', []), { logSeverityLevel: 4 });
    const { output } = await scalar.run({ input: tensor('int64', [16000n], [1]) });
    expect([...output.data]).toEqual([16000n]);
    await scalar.release();
  });

  it.runIf(ours)('reads its inputs at the call', async () => {
    const given = feeds();
    const running = session.run(given);
    given.a.data.fill(100);
    given.b.dispose();
    expect([...(await running).sum.data]).toEqual(sum);
  });

  it.runIf(ours)('has a synchronous twin', () => {
    expect([...session.runSync(feeds()).sum.data]).toEqual(sum);
    expect(Object.keys(session.runSync(feeds(), ['product']))).toEqual(['product']);
  });
});

describe('run refuses', () => {
  it.each<[string, unknown]>([
    ['no feeds', undefined],
    ['null', null],
    ['a number', 5],
    ['a tensor', floats([1, 2, 3, 4], [2, 2])],
    ['an array', []],
  ])('%s for feeds', async (_, value) => {
    await expectFailure(() => session.run(value), { type: TypeError, message: /'feeds'/, code: 'INVALID_ARGUMENT' });
  });

  it.each<[string, unknown[], typeof TypeError | typeof RangeError, RegExp]>([
    ['null for fetches', [null], TypeError, /argument\[1\]/],
    ['a number for fetches', [1], TypeError, /argument\[1\]/],
    ['a string for fetches', ['sum'], TypeError, /argument\[1\]/],
    ['a tensor for fetches', [floats([1])], TypeError, /'fetches'/],
    ['an empty array for fetches', [[]], TypeError, /'fetches'/],
    ['names that are no strings', [[1, 2]], TypeError, /'fetches'/],
    ['an output that the model lacks', [['sums']], RangeError, /'fetches'/],
    ['a number for options', [['sum'], 5], TypeError, /'options'/],
    ['null for options', [{ sum: null }, null], TypeError, /'options'/],
  ])('%s', async (_, args, type, message) => {
    await expectFailure(() => session.run(feeds(), ...args), { type, message, code: 'INVALID_ARGUMENT' });
  });

  it.each<[string, object, any, RegExp]>([
    ['a log level that is no number', { logSeverityLevel: '2' }, TypeError, /logSeverityLevel/],
    ['a log level that does not exist', { logSeverityLevel: 5 }, RangeError, /logSeverityLevel/],
    ['a negative log level', { logSeverityLevel: -1 }, RangeError, /logSeverityLevel/],
    ['a broken log level', { logSeverityLevel: 1.5 }, RangeError, /logSeverityLevel/],
    ['a tag that is no string', { tag: 5 }, TypeError, /tag/],
  ])('%s', async (_, options, type, message) => {
    await expectFailure(() => session.run(feeds(), options), { type, message, code: 'INVALID_ARGUMENT' });
  });
});

describe('a released session', () => {
  it('refuses everything but its names', async () => {
    const gone = await InferenceSession.create(add());
    await gone.release();
    const disposed = { message: 'Session already disposed', code: 'DISPOSED' };
    await expectFailure(() => gone.run({ a: floats([1, 2]), b: floats([3, 4]) }), disposed);
    await expectFailure(() => gone.release(), disposed);
    await expectFailure(() => gone.endProfiling(), disposed);
    expect(gone.inputNames).toEqual(['a', 'b']);
    expect(gone.outputMetadata).toHaveLength(1);
  });

  it('lets no new run begin', async () => {
    const going = await InferenceSession.create(add());
    const releasing = going.release();
    const late = going.run({ a: floats([1, 2]), b: floats([3, 4]) });
    await expectFailure(() => late, { message: 'Session already disposed', code: 'DISPOSED' });
    await releasing;
  });

  it.runIf(ours)('finishes the runs that have begun', async () => {
    const going = await InferenceSession.create(matmul());
    const size = 256;
    const ones = () => floats(new Array(size * size).fill(1), [size, size]);
    const runs = [1, 2, 3].map(() => going.run({ a: ones(), b: ones() }));
    await going.release();
    for (const { c } of await Promise.all(runs)) expect(c.data[0]).toBe(size);
  });

  it.runIf(ours)('can be released by `using`', async () => {
    const held = await InferenceSession.create(add());
    await held[Symbol.asyncDispose]();
    await expectFailure(() => held.run({}), { message: 'disposed', code: 'DISPOSED' });
    const again = await InferenceSession.create(add());
    again[Symbol.dispose]();
    again[Symbol.dispose]();
    await expectFailure(() => again.run({}), { message: 'disposed', code: 'DISPOSED' });
  });

  it('may never have been one that profiles', async () => {
    const plain = await InferenceSession.create(add());
    plain.startProfiling();
    await plain.release();
  });
});
