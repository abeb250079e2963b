import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { expectFailure, failureOf, floats, ort, ours, tensor } from '../fixtures/engine.js';
import { add, gather, identity } from '../fixtures/models.js';
import { model, node, oneNode } from '../fixtures/onnx-writer.js';
import { slow } from './engine/models.js';
import { withBystander } from './support/bystander.js';
import { create, info, x, y } from './support/refusals.js';

const { InferenceSession, Tensor } = ort;
const int64s = (...values: (bigint | number)[]) => tensor('int64', values.map(BigInt), [values.length]);
const bystander = withBystander();

describe.runIf(ours)('feeds', () => {
  it('that run code of the caller are read once and never by the engine', async () => {
    const session = await create(add());
    const reads: string[] = [];
    const watched = new Proxy(floats([1, 2]), {
      get(target, key) {
        reads.push(String(key));
        return Reflect.get(target, key, target);
      },
    });
    const { c } = await session.run({ a: watched, b: floats([1, 1]) });
    expect([...c.data]).toEqual([2, 3]);
    for (const key of ['type', 'dims', 'data']) expect(reads.filter((read) => read === key)).toHaveLength(1);
    await session.release();
  });

  it.each<[string, () => any]>([
    ['a getter that throws', () => ({ type: 'float32', dims: [2], location: 'cpu', get data() { throw new Error('mine'); } })], // prettier-ignore
    ['dims that throw', () => new Proxy(floats([1, 2]), { get: (t, k) => { if (k === 'dims') throw new Error('mine'); return t[k]; } })], // prettier-ignore
    ['feeds that throw', () => undefined],
  ])('with %s fail with that error', async (what, value) => {
    const session = await create(add());
    const feeds = what === 'feeds that throw' ? { get a() { throw new Error('mine'); }, b: floats([1, 1]) } : { a: value(), b: floats([1, 1]) }; // prettier-ignore
    expect((await failureOf(() => session.run(feeds))).message).toContain('mine');
    expect((await failureOf(() => session.runSync(feeds))).message).toContain('mine');
    await session.release();
  });

  it.each<[string, any]>([
    ['dims that shrink while they are read', { get length() { return 1; }, 0: 2 }], // prettier-ignore
    ['dims of numbers in text', ['2']],
    ['negative dims', [-2]],
    ['broken dims', [1.5]],
    ['dims of NaN', [NaN]],
    ['dims beyond any memory', [2 ** 53]],
    ['dims whose product overflows', [2 ** 40, 2 ** 40]],
    ['dims of infinity', [Infinity]],
  ])('with %s are refused', async (_, dims) => {
    const session = await create(identity('float32'));
    const input = { type: 'float32', dims, location: 'cpu', data: Float32Array.of(1, 2) };
    for (const run of ['run', 'runSync']) {
      expect(await failureOf(() => session[run]({ input }))).toMatchObject({
        code: 'INVALID_ARGUMENT',
        input: 'input',
      });
    }
    await session.release();
  });

  it('of very many dims get a message that can be read', async () => {
    const session = await create(identity('float32', [1]));
    const input = { type: 'float32', dims: new Array(100_000).fill(1), location: 'cpu', data: Float32Array.of(1) };
    const error = await failureOf(() => session.run({ input }));
    expect(error).toMatchObject({ code: 'SHAPE_MISMATCH', input: 'input', expected: 'at most 1024 dims' });
    expect(error.message).toBe("input 'input': a tensor has at most 1024 dims, got 100000 dims.");
    input.dims.length = 1000;
    const other = await failureOf(() => session.run({ input }));
    expect(other).toMatchObject({ code: 'SHAPE_MISMATCH', input: 'input', expected: '[1]' });
    expect(other.actual).toBe(`[${'1,'.repeat(64)}...]`);
    expect(other.message.length).toBeLessThan(1000);
    await session.release();
  });

  it.each<[string, any]>([
    ['no typed array', { length: 2, 0: 1, 1: 2 }],
    ['a typed array of another type', Int32Array.of(1, 2)],
    ['a typed array of too few bytes', Float32Array.of(1)],
    ['a string', 'ab'],
    ['null', null],
  ])('whose data is %s are refused', async (_, data) => {
    const session = await create(identity('float32', [2]));
    const input = { type: 'float32', dims: [2], location: 'cpu', data };
    for (const run of ['run', 'runSync']) {
      expect(await failureOf(() => session[run]({ input }))).toMatchObject({
        code: 'INVALID_ARGUMENT',
        input: 'input',
      });
    }
    await session.release();
  });

  it('of strings may hold only strings', async () => {
    const session = await create(identity('string'));
    for (const element of [5, null, undefined, {}, Symbol('s'), 5n]) {
      const input = { type: 'string', dims: [2], location: 'cpu', data: ['a', element] };
      const error = await failureOf(() => session.run({ input }));
      expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', input: 'input' });
    }
    const odd = ['\0', '\ud800', 'é'.repeat(1000)];
    const { output } = await session.run({ input: new Tensor('string', odd, [3]) });
    expect([...output.data]).toEqual(['\0', '\ufffd', 'é'.repeat(1000)]);
    await session.release();
  });

  it('whose bytes go while others are read are refused or read whole', async () => {
    const session = await create(add());
    const victim = floats([1, 2]);
    const thief = {
      type: 'float32',
      dims: [2],
      location: 'cpu',
      get data() {
        if (victim.data.length) structuredClone(victim.data.buffer, { transfer: [victim.data.buffer] });
        return Float32Array.of(1, 2);
      },
    };
    for (const feeds of [
      { a: victim, b: thief },
      { b: victim, a: thief },
    ]) {
      for (const run of ['run', 'runSync']) {
        const outcome = await Promise.resolve()
          .then(() => session[run](feeds))
          .catch((error: any) => error);
        if (outcome instanceof Error) expect(outcome).toMatchObject({ code: 'INVALID_ARGUMENT' });
        else expect([...outcome.c.data]).toEqual([2, 4]);
      }
    }
    await session.release();
  });

  it("that make an output of dims beyond JavaScript's numbers say them", async () => {
    const session = await create(oneNode('ConstantOfShape', [info('n', 'int64')], [info('y', 'float32', ['a', 'b'])]));
    const feeds = { n: int64s(0, 2n ** 53n + 1n) };
    const expected = { code: 'INVALID_ARGUMENT', message: expect.stringContaining('[0,9007199254740993]') };
    expect(await failureOf(() => session.run(feeds))).toMatchObject(expected);
    expect(await failureOf(() => session.runSync(feeds))).toMatchObject(expected);
    expect((await session.run({ n: int64s(0, 2 ** 53 - 1) })).y.dims).toEqual([0, 2 ** 53 - 1]);
    await session.release();
  });

  it('of a model, beyond 2^53, are said as they are', async () => {
    const dims = [2 ** 60, 0];
    const weight = { name: 'w', type: 'float32', dims, data: new Float32Array(0) } as const;
    const session = await create(
      model({
        nodes: [node('Identity', ['w'], ['y']), node('Identity', ['x'], ['z'])],
        inputs: [info('x', 'float32', dims)],
        outputs: [info('y', 'float32', ['a', 'b']), info('z', 'float32', ['c', 0])],
        initializers: [weight],
      }),
    );
    expect(session.inputMetadata[0].shape).toEqual([String(2n ** 60n), 0]);
    const wrong = await failureOf(() => session.run({ x: tensor('float32', new Float32Array(0), [3, 0]) }));
    expect(wrong).toMatchObject({ code: 'SHAPE_MISMATCH', message: expect.stringMatching(/Expected: 1152921504606846976/) }); // prettier-ignore
    await session.release();
    const constant = await create(
      model({
        nodes: [node('Identity', ['w'], ['y'])],
        outputs: [info('y', 'float32', ['a', 'b'])],
        initializers: [weight],
      }),
    );
    const error = await failureOf(() => constant.run({}));
    expect(error).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('[1152921504606846976,0]'),
    });
    await constant.release();
  });

  it('beyond what a model takes are named with what it takes', async () => {
    const session = await create(oneNode('Identity', [info('pixel_values')], [y]));
    const error = await failureOf(() => session.run({ pixel_value: floats([1, 2]), other: floats([1]) }));
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', input: 'pixel_values' });
    expect(error.message).toContain("'pixel_value'");
    expect(error.message).not.toContain("'other'");
    await session.release();
  });
});

describe.runIf(ours)('engine memory', () => {
  it.each<[string, any[]]>([
    ['no type', [undefined, [1]]],
    ['an unknown type', ['float33', [1]]],
    ['negative dims', ['float32', [-1]]],
    ['broken dims', ['float32', [1.5]]],
    ['dims of text', ['float32', '1']],
    ['more than there is', ['float32', [2 ** 45]]],
    ['more than can be counted', ['float32', [2 ** 40, 2 ** 40]]],
    ['a device of a number', ['float32', [1], 5]],
    ['an unknown device', ['float32', [1], 'moon']],
  ])('asked for with %s is refused', async (_, wanted) => {
    const session = await create(add());
    const { code } = await failureOf(() => session.allocate(...wanted));
    expect(['INVALID_ARGUMENT', 'OUT_OF_MEMORY']).toContain(code);
    await session.release();
  });
});

describe.runIf(ours)('a release', () => {
  it('during runs lets them end', async () => {
    const session = await create(slow(20));
    const square = floats(new Array(200 * 200).fill(0.001), [200, 200]);
    const runs = [session.run({ x: square }), session.run({ x: square }), session.run({ x: square })];
    const released = session.release();
    for (const { y: result } of await Promise.all(runs)) expect(result.dims).toEqual([200, 200]);
    await released;
    expect(await failureOf(() => session.run({ x: square }))).toMatchObject({ code: 'DISPOSED' });
    expect(await failureOf(() => session.runSync({ x: square }))).toMatchObject({ code: 'DISPOSED' });
    expect(await failureOf(() => session.allocate('float32', [1]))).toMatchObject({ code: 'DISPOSED' });
    expect(session.inputNames).toEqual(['x']);
  });
});

describe.runIf(ours)('options', () => {
  const extra: any = {};
  extra.deep = { again: [extra] };
  it.each<[string, any]>([
    ['cyclic extra', { extra }],
    ['extra that is text', { extra: 'x' }],
    ['extra with a function', { extra: { a: () => '1' } }],
    ['dims of text', { freeDimensionOverrides: { n: '2' } }],
    ['negative dims', { freeDimensionOverrides: { n: -2 } }],
    ['a NaN memory limit', { memoryLimit: NaN }],
    ['a negative memory limit', { memoryLimit: -1 }],
    ['a model cache that is no path', { modelCacheDir: true }],
    ['a tuning that does not exist', { tuning: 'always' }],
    ['a tuning that is a switch', { tuning: true }],
    ['providers of numbers', { executionProviders: [5] }],
    ['external data without a path', { externalData: [{ data: new Uint8Array(1) }] }],
    ['external data of text', { externalData: [{ path: 'a', data: 5 }] }],
    ['a signal that is none', { signal: 5 }],
  ])('of the wrong kind: %s', async (_, options) => {
    const error = await failureOf(() => create(add(), options));
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(error instanceof TypeError || error instanceof RangeError).toBe(true);
  });

  it('that throw are passed on', async () => {
    const options = { get intraOpNumThreads() { throw new Error('mine'); } }; // prettier-ignore
    expect((await failureOf(() => InferenceSession.create(add(), options))).message).toBe('mine');
  });

  it.each<[string, any]>([
    ['a tag of a number', { tag: 5 }],
    ['a timeout of text', { timeout: 'soon' }],
    ['a negative timeout', { timeout: -1 }],
    ['a signal that is none', { signal: {} }],
    ['a severity of text', { logSeverityLevel: 'x' }],
  ])('of a run, of the wrong kind: %s', async (_, options) => {
    const error = await failureOf(() => bystander.session.run({ a: floats([1, 2]), b: floats([1, 2]) }, options));
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT' });
  });
});

describe.runIf(ours)('a run that asks for too much', () => {
  const fill = oneNode('ConstantOfShape', [info('s', 'int64', ['n'])], [info('y', 'float32', undefined)], {
    name: 'fill',
  });

  it.each<[string, bigint[]]>([
    ['more than an address space', [1n << 50n]],
    ['more elements than can be counted', [1n << 40n, 1n << 40n]],
    ['more than this machine has', [1n << 45n]],
  ])('%s fails with the node', async (_, dims) => {
    const session = await create(fill);
    for (const run of ['run', 'runSync']) {
      const error = await failureOf(() => session[run]({ s: int64s(...dims) }));
      expect(error).toMatchObject({ code: 'OUT_OF_MEMORY' });
    }
    expect((await session.run({ s: int64s(2) })).y.dims).toEqual([2]);
    await session.release();
  });

  it('of memory that the system would promise and not have', () => {
    // In a process of its own: where this fails, the system ends a process.
    const script = `
      const ort = require(${JSON.stringify(fileURLToPath(new URL('../..', import.meta.url)))});
      const { freemem, totalmem } = require('node:os');
      (async () => {
        const session = await ort.InferenceSession.create(Buffer.from(process.env.MODEL, 'base64'), { logSeverityLevel: 4 });
        const count = BigInt(Math.floor(totalmem() / 4 * 0.99));
        const s = new ort.Tensor('int64', [count], [1]);
        await session.run({ s }).then(() => console.log('ran'), (error) => console.log(error.code));
        console.log(process.resourceUsage().maxRSS < 2e6);
      })();`;
    const sum = model({
      nodes: [node('ConstantOfShape', ['s'], ['t']), node('ReduceMax', ['t'], ['y'])],
      inputs: [info('s', 'int64', ['n'])],
      outputs: [info('y', 'float32', undefined)],
    });
    const env = { ...process.env, MODEL: Buffer.from(sum).toString('base64') };
    const { stdout, status } = spawnSync(process.execPath, ['-e', script], { env, encoding: 'utf8', timeout: 60_000 });
    expect({ stdout, status }).toEqual({ stdout: 'OUT_OF_MEMORY\ntrue\n', status: 0 });
  });

  it('of memory within a limit of its own, by an error that names the node', async () => {
    const session = await create(fill, { memoryLimit: 1 << 20 });
    const error = await failureOf(() => session.run({ s: int64s(1 << 20) }));
    expect(error).toMatchObject({ code: 'OUT_OF_MEMORY', node: 'fill', opType: 'ConstantOfShape' });
    expect(error.message).toMatch(
      /'fill': the run asked for 4194304 bytes while 0 of the 1048576 bytes of its memoryLimit/,
    );
    expect((await session.run({ s: int64s(3) })).y.dims).toEqual([3]);
    await session.release();
    const nameless = oneNode('ConstantOfShape', [info('s', 'int64', ['n'])], [info('y', 'float32', undefined)]);
    const other = await create(nameless, { memoryLimit: 1 << 20 });
    const { message } = await failureOf(() => other.run({ s: int64s(1 << 20) }));
    expect(message).toMatch(/ConstantOfShape producing 'y': the run asked for 4194304 bytes/);
    await other.release();
  });

  it('of memory for a result whose shape is known before, too', async () => {
    const grow = (rows: number) =>
      model({
        nodes: [node('Expand', ['x', 's'], ['y'], { name: 'grow' })],
        inputs: [info('x', 'float32', [1])],
        outputs: [info('y', 'float32', undefined)],
        initializers: [{ name: 's', type: 'int64', dims: [2], data: BigInt64Array.of(BigInt(rows), 3000n) }],
      });
    const one = tensor('float32', [1], [1]);
    const limited = await create(grow(3000), { memoryLimit: 5_000_000 });
    expect(await failureOf(() => limited.run({ x: one }))).toMatchObject({ code: 'OUT_OF_MEMORY', node: 'grow' });
    await limited.release();
    const huge = await create(grow(2 ** 40));
    const error = await failureOf(() => huge.run({ x: one }));
    expect(error).toMatchObject({ code: 'OUT_OF_MEMORY', node: 'grow' });
    await huge.release();
  });

  it('of time ends at its deadline', async () => {
    const endless = model({
      nodes: [
        node('Loop', ['n', '', 'x'], ['y'], {
          attributes: {
            body: {
              nodes: [node('Identity', ['k'], ['o']), node('Neg', ['v'], ['p'])],
              inputs: [info('i', 'int64', []), info('k', 'bool', []), info('v')],
              outputs: [info('o', 'bool', []), info('p')],
            },
          },
        }),
      ],
      inputs: [info('n', 'int64', []), x],
      outputs: [y],
    });
    const session = await create(endless);
    const feeds = { n: tensor('int64', [2n ** 63n - 1n], []), x: floats([1, 2]) };
    expect(await failureOf(() => session.run(feeds, { timeout: 50 }))).toMatchObject({ code: 'ABORTED' });
    expect(await failureOf(() => session.runSync(feeds, { timeout: 50 }))).toMatchObject({ code: 'ABORTED' });
    await session.release();
  });
});

describe.runIf(ours)('kernels name their node when they fail:', () => {
  const cases: [string, Uint8Array, Record<string, any>][] = [
    ['a Gather index', gather(), { indices: int64s(3) }],
    ['a division by zero', oneNode('Div', [info('x', 'int64', ['n']), info('w', 'int64', ['n'])], [info('y', 'int64', ['n'])], { name: 'lookup' }), { x: int64s(1), w: int64s(0) }], // prettier-ignore
    ['a shape of two unknown dims', oneNode('Reshape', [x, info('s', 'int64', ['n'])], [info('y', 'float32', undefined)], { name: 'lookup' }), { x: floats([1, 2]), s: int64s(-1, -1) }], // prettier-ignore
    ['a shape of another size', oneNode('Reshape', [x, info('s', 'int64', ['n'])], [info('y', 'float32', undefined)], { name: 'lookup' }), { x: floats([1, 2]), s: int64s(3) }], // prettier-ignore
    ['a range without a step', oneNode('Range', ['a', 'b', 'c'].map((name) => info(name, 'int64', [])), [info('y', 'int64', undefined)], { name: 'lookup' }), { a: tensor('int64', [0n], []), b: tensor('int64', [5n], []), c: tensor('int64', [0n], []) }], // prettier-ignore
    ['too many wanted', oneNode('TopK', [x, info('k', 'int64', [1])], [info('y', 'float32', undefined), info('i', 'int64', undefined)], { name: 'lookup' }), { x: floats([1, 2]), k: int64s(5) }], // prettier-ignore
    ['an axis', oneNode('Softmax', [x], [y], { name: 'lookup', attributes: { axis: 5n } }), { x: floats([1, 2]) }],
  ];
  it.each(cases)('%s', async (what, bytes, feeds) => {
    const session = await create(bytes);
    for (const run of ['run', 'runSync']) {
      const outcome = await Promise.resolve()
        .then(() => session[run](feeds))
        .catch((error: any) => error);
      if (what === 'a division by zero' && !(outcome instanceof Error)) continue; // any quotient will do
      expect(outcome).toMatchObject({ node: 'lookup' });
      expect(outcome.message).toContain('lookup');
      expect(['INVALID_ARGUMENT', 'SHAPE_MISMATCH']).toContain(outcome.code);
    }
    await session.release();
  });
});

describe.runIf(ours)('names that every object has', () => {
  const names = ['__proto__', 'constructor', 'toString'];

  it.each(names)('are inputs and outputs like any other: %s', async (name) => {
    const session = await create(oneNode('Identity', [info(name)], [info(`${name} out`)]));
    await expectFailure(() => session.run({}), {
      message: `input '${name}' is missing in 'feeds'.`,
      code: 'INVALID_ARGUMENT',
    });
    const feeds = Object.fromEntries([[name, floats([1, 2])]]);
    expect([...(await session.run(feeds))[`${name} out`].data]).toEqual([1, 2]);
    await session.release();

    const named = await create(oneNode('Identity', [x], [info(name)]));
    for (const fetches of [undefined, [name], Object.fromEntries([[name, floats([0, 0])]])]) {
      const results = await (fetches ? named.run({ x: floats([3, 4]) }, fetches) : named.run({ x: floats([3, 4]) }));
      expect(Object.keys(results)).toEqual([name]);
      expect(Object.getPrototypeOf(results)).toBe(Object.prototype);
      const [value] = Object.values(results) as any[];
      expect([...value.data]).toEqual([3, 4]);
      if (fetches && !Array.isArray(fetches)) expect(value).toBe(Object.values(fetches)[0]);
    }
    await named.release();
  });
});

describe.runIf(ours)('arguments that are no names', () => {
  it.each([1, null, undefined, {}, Symbol('x')])('are refused by a binding: %s', async (name) => {
    const session = await create(add());
    const binding = session.createIoBinding();
    const what = name === null ? 'null' : typeof name;
    for (const [role, bind] of [
      ['input', () => binding.bindInput(name, floats([1, 2]))],
      ['output', () => binding.bindOutput(name, floats([1, 2]))],
    ] as const) {
      const error = await failureOf(async () => bind());
      expect(error.code).toBe('INVALID_ARGUMENT');
      expect(error.message).toContain(`The name of an ${role} must be a string, got ${what}`);
    }
    await session.release();
  });

  it('run no code of the caller when an error shows them', async () => {
    const session = await create(add());
    const hostile = { toString: () => expect.fail('was called') };
    const fed = { type: 'float32', dims: [hostile], data: Float32Array.of(1), location: 'cpu' };
    const error = await failureOf(() => session.run({ a: fed, b: floats([1, 2]) }));
    expect(error.code).toBe('INVALID_ARGUMENT');
    expect(error.message).toContain("input 'a': Tensor.dims[0] must be an integer, got object");
    await session.release();
  });
});
