import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectFailure, failureOf, floats, ort } from '../../fixtures/engine.js';
import { alias, double, indices, rounds, slow } from './models.js';

const { InferenceSession, Tensor } = ort;
const ramp = (n: number, from: number) => Array.from({ length: n }, (_, i) => from + i);
const square = (n: number) => floats(new Array(n * n).fill(1 / n), [n, n]);

/** How many timers ran while `action` was under way: none where it held the event loop all the time. */
async function turnsDuring(action: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  const beat = (): void => {
    turns++;
    timer = setTimeout(beat, 0);
  };
  let timer = setTimeout(beat, 0);
  await action();
  clearTimeout(timer);
  return turns;
}

describe('the event loop', () => {
  it('goes on while a model runs', async () => {
    const session = await InferenceSession.create(slow());
    const x = square(800);
    expect(await turnsDuring(() => session.run({ x }))).toBeGreaterThan(2);
    await session.release();
  });

  it('goes on while a loop runs that took no time with other data of the same shapes', async () => {
    const session = await InferenceSession.create(rounds());
    const times = (n: bigint) => ({ n: new Tensor('int64', BigInt64Array.of(n), []), x: floats([1]) });
    for (let i = 0; i < 5; i++) await session.run(times(1n));
    const signal = AbortSignal.timeout(50);
    const turns = await turnsDuring(() =>
      expectFailure(() => session.run(times(2n ** 40n), { ['y']: null }, { signal, timeout: 20_000 }), {
        message: 'the run was cancelled',
        code: 'ABORTED',
      }),
    );
    expect(turns).toBeGreaterThan(2);
    await session.release();
  });

  it('goes on while a model loads', async () => {
    const large = slow(20_000);
    expect(await turnsDuring(() => InferenceSession.create(large))).toBeGreaterThan(2);
  });
});

describe('an abort', () => {
  let session: any;
  beforeAll(async () => {
    session = await InferenceSession.create(slow(400));
  });
  afterAll(() => session.release());

  it('ends a run and leaves the session usable', async () => {
    const controller = new AbortController();
    const reason = new Error('changed my mind');
    const running = session.run({ x: square(300) }, { signal: controller.signal });
    setTimeout(() => controller.abort(reason), 5);
    const error = await expectFailure(() => running, { message: 'the run was cancelled', code: 'ABORTED' });
    expect(error).toMatchObject({ name: 'AbortError', cause: reason });
    expect((await session.run({ x: square(2) })).y.size).toBe(4);
  });

  it('by time ends it too, on the calling thread as well', async () => {
    const x = square(300);
    const client = new AbortController();
    for (const signal of [AbortSignal.timeout(5), AbortSignal.any([client.signal, AbortSignal.timeout(5)])]) {
      const late = await failureOf(() => session.run({ x }, { signal }));
      expect(late).toMatchObject({ name: 'TimeoutError', code: 'ABORTED', cause: { name: 'TimeoutError' } });
      const before = await failureOf(() => session.run({ x }, { signal }));
      expect(before).toMatchObject({ name: 'TimeoutError', code: 'ABORTED' });
    }
    for (const run of ['run', 'runSync']) {
      const error = await expectFailure(() => session[run]({ x }, { timeout: 5 }), {
        message: 'the run took longer than its timeout of 5 ms',
        code: 'ABORTED',
      });
      expect(error.name).toBe('TimeoutError');
    }
  });

  it('leaves other runs alone', async () => {
    const controller = new AbortController();
    const x = square(100);
    const runs = [session.run({ x }), failureOf(() => session.run({ x }, { signal: controller.signal }))];
    controller.abort();
    const [kept] = await Promise.all(runs);
    expect(kept.y.dims).toEqual([100, 100]);
  });

  it('ends a load', async () => {
    const controller = new AbortController();
    const loading = failureOf(() => InferenceSession.create(slow(5000), { signal: controller.signal }));
    controller.abort();
    expect(await loading).toMatchObject({ code: 'ABORTED', name: 'AbortError' });
  });

  it('by its timeout ends a load', async () => {
    const late = await failureOf(() => InferenceSession.create(slow(20_000), { timeout: 2 }));
    expect(late).toMatchObject({ code: 'ABORTED', name: 'TimeoutError' });
    expect(late.message).toBe('The load took longer than its timeout of 2 ms.');
    const controller = new AbortController();
    const options = { timeout: 60_000, signal: controller.signal };
    const loading = failureOf(() => InferenceSession.create(slow(20_000), options));
    controller.abort('enough');
    expect(await loading).toMatchObject({ code: 'ABORTED', name: 'AbortError', cause: 'enough' });
    await (await InferenceSession.create(slow(1), { timeout: 60_000 })).release();
    for (const timeout of [-1, 0.5, 2 ** 31]) {
      expect(await failureOf(() => InferenceSession.create(slow(1), { timeout }))).toBeInstanceOf(RangeError);
    }
    expect(await failureOf(() => InferenceSession.create(slow(1), { timeout: '5' }))).toBeInstanceOf(TypeError);
  });

  it('ends a load that has begun, wherever it is', async () => {
    const large = slow(20_000);
    for (const after of [1, 20, 60]) {
      const controller = new AbortController();
      const loading = failureOf(() => InferenceSession.create(large, { signal: controller.signal }));
      setTimeout(() => controller.abort('enough'), after);
      expect(await loading).toMatchObject({ code: 'ABORTED', name: 'AbortError', cause: 'enough' });
    }
  });
});

describe('memory that JavaScript owns', () => {
  let session: any;
  beforeAll(async () => {
    session = await InferenceSession.create(double());
  });
  afterAll(() => session.release());
  const size = 200_000;

  it('may be given away while a run that read it goes on', async () => {
    const data = new Float32Array(size).fill(3);
    const running = session.run({ x: new Tensor('float32', data) });
    structuredClone(data.buffer, { transfer: [data.buffer] });
    expect(new Set((await running).y.data)).toEqual(new Set([6]));
  });

  it('may be changed at once, however large: threads share its copy', async () => {
    for (const large of [500_001, 3_000_017]) {
      const data = new Float32Array(large).map((_, i) => i);
      const running = session.run({ x: new Tensor('float32', data) });
      data.fill(-1);
      const { y } = await running;
      expect(y.data.findIndex((value: number, i: number) => value !== 2 * i)).toBe(-1);
    }
  });

  it('that an output goes to is checked again at the end', async () => {
    const fresh = await InferenceSession.create(double()); // its first run is not known to be short
    const target = new Tensor('float32', new Float32Array(size));
    const running = failureOf(() => fresh.run({ x: floats(new Array(size).fill(1)) }, { y: target }));
    structuredClone(target.data.buffer, { transfer: [target.data.buffer] });
    expect(await running).toMatchObject({ code: 'INVALID_ARGUMENT', output: 'y' });
    await fresh.release();
  });

  it('may shrink', async () => {
    const buffer: any = new (ArrayBuffer as any)(size * 4, { maxByteLength: size * 4 });
    const x = new Tensor('float32', new Float32Array(buffer));
    const running = session.run({ x });
    buffer.resize(0);
    expect((await running).y.size).toBe(size);
    const error = await failureOf(() => session.run({ x }));
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', input: 'x' });
  });

  it('comes back filled as the same object, of any size', async () => {
    for (const n of [1, 1000, size]) {
      const x = floats(new Array(n).fill(2));
      const target = new Tensor('float32', new Float32Array(n));
      for (const run of ['run', 'runSync']) {
        target.data.fill(0);
        expect((await session[run]({ x }, { y: target })).y).toBe(target);
        expect(target.data[n - 1]).toBe(4);
      }
    }
  });

  it('may be input and output at once', async () => {
    for (const run of ['run', 'runSync']) {
      const data = Float32Array.of(1, 2, 3, 4, 0);
      const x = new Tensor('float32', data.subarray(0, 4));
      const shifted = new Tensor('float32', data.subarray(1, 5));
      await session[run]({ x }, { y: shifted });
      expect([...data]).toEqual([1, 2, 4, 6, 8]);
    }
  });

  it('of an output that does not fit stays as it is', async () => {
    const target = new Tensor('float32', Float32Array.of(7, 7));
    const fields = { output: 'y', expected: 'float32[2]', actual: 'float32[3]' };
    for (const run of ['run', 'runSync']) {
      await expectFailure(() => session[run]({ x: floats([1, 2, 3]) }, { y: target }), {
        message: /preallocated/,
        code: 'SHAPE_MISMATCH',
        fields,
      });
      expect([...target.data]).toEqual([7, 7]);
    }
  });

  it('is not shared by results with inputs or with each other', async () => {
    const identities = await InferenceSession.create(alias());
    for (const n of [2, size]) {
      for (const run of ['run', 'runSync', 'run']) {
        const x = floats(new Array(n).fill(5));
        const { y, z } = await identities[run]({ x });
        x.data[0] = 0;
        y.data[0] = 1;
        expect([z.data[0], z.data[n - 1]]).toEqual([5, 5]);
      }
    }
    await identities.release();
  });

  it('of large results is their own where their size was not known before', async () => {
    const session = await InferenceSession.create(indices());
    for (const n of [1, size, 3, size, size + 1]) {
      const [first, second] = await Promise.all([0, 1].map((from) => session.run({ x: floats(ramp(n, from)) })));
      expect([first.y.size, second.y.size]).toEqual([n - 1, n]);
      expect([...first.y.data.slice(-2)]).toEqual(n > 2 ? [BigInt(n - 2), BigInt(n - 1)] : []);
      first.z.data.fill(-1n);
      expect(first.y.data.every((index: bigint, i: number) => index === BigInt(i + 1))).toBe(true);
    }
    await session.release();
  });
});

describe('engine memory', () => {
  it('carries values from run to run', async () => {
    const session = await InferenceSession.create(double());
    const state = session.allocate('float32', [3]);
    state.setData(Float32Array.of(1, 2, 3));
    const binding = session.createIoBinding();
    binding.bindInput('x', state).bindOutput('y');
    await session.run(binding);
    binding.bindInput('x', binding.outputs.y);
    await session.run(binding);
    session.runSync(binding);
    expect([...(await binding.outputs.y.getData())]).toEqual([4, 8, 12]);
    expect([...state.data]).toEqual([1, 2, 3]);

    const target = session.allocate('float32', [3]);
    binding.bindOutput('y', target);
    expect((await binding.run()).y).toBe(target);
    expect([...target.data]).toEqual([4, 8, 12]);
    const small = session.allocate('float32', [2]);
    binding.bindOutput('y', small);
    await expectFailure(() => binding.run(), {
      message: "output 'y' is float32[3], which does not fit into the preallocated float32[2]",
      code: 'SHAPE_MISMATCH',
      fields: { output: 'y', expected: 'float32[2]', actual: 'float32[3]' },
    });
    state.dispose();
    binding.bindInput('x', state);
    expect(await failureOf(() => binding.run())).toMatchObject({ code: 'DISPOSED', input: 'x' });
    await session.release();
    expect([...target.data]).toEqual([4, 8, 12]); // outlives its session
  });

  it("has results that prefer 'cpu-pinned'", async () => {
    const session = await InferenceSession.create(double(), { preferredOutputLocation: 'cpu-pinned' });
    const { y } = await session.run({ x: floats([1, 2]) });
    expect(y).toMatchObject({ location: 'cpu-pinned', dims: [2] });
    expect([...(await session.run({ x: y })).y.data]).toEqual([4, 8]);
    expect([...(await y.getData(true))]).toEqual([2, 4]);
    expect(y.location).toBe('none');
    await session.release();
  });

  it('of results does not view an input that JavaScript owns', async () => {
    const session = await InferenceSession.create(alias());
    for (let i = 0; i < 3; i++) {
      const data = Float32Array.of(1, 2);
      const binding = session.createIoBinding();
      binding.bindInput('x', new Tensor('float32', data)).bindOutput('y');
      session.runSync(binding);
      data.fill(9);
      expect([...binding.outputs.y.data]).toEqual([1, 2]);
    }
    await session.release();
  });

  it('on the null device is reached by copies', async () => {
    const session = await InferenceSession.create(double(), { executionProviders: ['null', 'cpu'] });
    expect(session.placement).toEqual([expect.objectContaining({ provider: 'null' })]);
    const x = session.allocate('float32', [2], 'null');
    expect(x).toMatchObject({ location: 'gpu-buffer' });
    expect(() => x.data).toThrow(/not on CPU/);
    x.setData(Float32Array.of(1, 2));
    const binding = session.createIoBinding();
    binding.bindInput('x', x).bindOutput('y', 'null');
    await expectFailure(() => binding.bindOutput('y', 'cuda:7'), {
      code: 'INVALID_ARGUMENT',
      message: "output 'y': unknown device 'cuda:7'; this session has 'cpu', 'null:0'",
    });
    await session.run(binding);
    expect(binding.outputs.y.location).toBe('gpu-buffer');
    expect([...(await binding.outputs.y.getData())]).toEqual([2, 4]);
    expect([...(await session.run({ x: floats([5]) })).y.data]).toEqual([10]);
    expect(() => session.allocate('float32', [1], 'moon')).toThrow(/moon/);
    await session.release();
    const preferring = await InferenceSession.create(double(), {
      executionProviders: ['null'],
      preferredOutputLocation: 'gpu-buffer',
    });
    const { y } = await preferring.run({ x: floats([1]) });
    expect(y.location).toBe('gpu-buffer');
    expect([...(await y.getData(true))]).toEqual([2]);
    expect(y.location).toBe('none');
    await preferring.release();
  });
});
