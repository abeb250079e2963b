import { spawnSync } from 'node:child_process';
import { linkSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { expectFailure, failureOf, floats, ort, ours, tensor } from '../fixtures/engine.js';
import { add, gather, identity } from '../fixtures/models.js';
import {
  lengthPrefix,
  message,
  model,
  type ModelSpec,
  node,
  oneNode,
  tensorProto,
  type TensorInfo,
} from '../fixtures/onnx-writer.js';
import { slow } from './engine/models.js';

const { InferenceSession, Tensor } = ort;
const quiet = { logSeverityLevel: 4 };
const folder = mkdtempSync(join(tmpdir(), 'infernode-bad-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const info = (name: string, type: TensorInfo['type'] = 'float32', shape: TensorInfo['shape'] = [2]): TensorInfo => ({
  name,
  type,
  shape,
});
const x = info('x');
const y = info('y');
const int64s = (...values: (bigint | number)[]) => tensor('int64', values.map(BigInt), [values.length]);
const create = (bytes: Uint8Array, options: object = {}) => InferenceSession.create(bytes, { ...quiet, ...options });
const refuse = (spec: ModelSpec | Uint8Array, expected: Parameters<typeof expectFailure>[1]) =>
  expectFailure(() => create(spec instanceof Uint8Array ? spec : model(spec)), expected);
const write = (name: string, bytes: Uint8Array): string => {
  writeFileSync(join(folder, name), bytes);
  return join(folder, name);
};
/** y = x + w, whose eight bytes lie in the file `location`. */
const external = (location: string): Uint8Array =>
  model({
    nodes: [node('Add', ['x', 'w'], ['y'])],
    inputs: [x],
    outputs: [y],
    initializers: [
      { name: 'w', type: 'float32', dims: [2], data: Float32Array.of(0), external: { location, offset: 0, length: 8 } },
    ],
  });

// Every failure leaves the process and other sessions as they were.
let bystander: any;
beforeAll(async () => {
  bystander = await create(add());
});
afterEach(async () => {
  expect([...(await bystander.run({ a: floats([1, 2]), b: floats([10, 20]) })).c.data]).toEqual([11, 22]);
});

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

describe.runIf(ours)('a model file', () => {
  it.each<[string, Uint8Array | string, RegExp]>([
    ['JSON', '{"error":"not found"}', /JSON/],
    [
      'a PyTorch checkpoint',
      Buffer.from('PK\x03\x04\0\0\x08\x08\0\0\0\0\0\0archive/data.pkl', 'latin1'),
      /zip|PyTorch/i,
    ],
    ['gzip', Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3, 4), /gzip/i],
    ['plain text', 'Access denied. Sign in to continue.\n', /text/i],
    ['a picture', Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13), /PNG|image/i],
    ['safetensors', Buffer.from('\x10\0\0\0\0\0\0\0{"__metadata__":{', 'latin1'), /safetensors/i],
    ['zeros', new Uint8Array(4096), /It looks like zeros: the file was reserved but never written; fetch it again\.$/],
    ['a flash chip wiped', new Uint8Array(600).fill(0xff), /^(?!.*plain text)/],
    ['noise', Uint8Array.from({ length: 4096 }, (_, i) => (i * 2654435761) >>> 13), /at byte \d+/],
  ])('that is %s says so', async (_, content, looksLike) => {
    const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content;
    const error = await refuse(bytes, { message: looksLike, code: 'INVALID_MODEL' });
    expect(error.message).toMatch(/^Failed to load model because protobuf parsing failed\./);
  });

  it('of a name that no file can have says so', () =>
    expectFailure(() => InferenceSession.create('model\0.onnx'), {
      message: 'Load model failed: the path holds a null character, which no file name can have',
      code: 'INVALID_ARGUMENT',
    }));

  it('in a buffer that was given away says so', async () => {
    const bytes = add();
    const buffer = bytes.buffer as ArrayBuffer;
    structuredClone(buffer, { transfer: [buffer] });
    const error = await failureOf(() => InferenceSession.create(buffer, quiet));
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(/detached/) });
    expect(await failureOf(() => create(bytes))).toMatchObject({ code: 'INVALID_MODEL' });
  });

  it('cut at any byte is refused', async () => {
    const whole = gather();
    for (let length = 0; length < whole.length; length++) {
      const session = await create(whole.slice(0, length)).catch((error: any) => {
        expect(error).toMatchObject({ code: 'INVALID_MODEL' });
      });
      // Only a cut between fields that are no part of the graph may leave a model.
      if (session) await session.release();
    }
  });

  it('that is missing says which', async () => {
    for (const path of [join(folder, 'none.onnx'), join(folder, 'none', 'none.onnx'), '\0', 'x'.repeat(5000)]) {
      const error = await failureOf(() => InferenceSession.create(path, quiet));
      expect(['IO', 'INVALID_ARGUMENT']).toContain(error.code);
    }
  });
});

describe.runIf(ours)('a model', () => {
  it('with unknown operators names all of them, nested ones too', async () => {
    const branch = (op: string) => ({
      nodes: [node(op, ['x'], ['z'])],
      outputs: [info('z')],
    });
    const spec = {
      nodes: [
        node('Unheard', ['x'], ['a'], { name: 'first' }),
        node('Unheard', ['a'], ['b']),
        node('Relu', ['b'], ['d'], { domain: 'com.example' }),
        node('If', ['c'], ['y'], { attributes: { then_branch: branch('Unseen'), else_branch: branch('Relu') } }),
      ],
      inputs: [x, info('c', 'bool', [])],
      outputs: [y],
      opsets: { 'com.example': 3 },
    };
    const error = await refuse(spec, { message: /Unheard[^]*Unseen/, code: 'UNSUPPORTED_OPERATOR' });
    expect(error.message).toContain('com.example');
    expect(error).toMatchObject({ opType: 'Unheard', node: 'first' });
    expect(error.details).toHaveLength(3);
  });

  it('with a misspelt operator gets the nearest', async () => {
    await refuse(oneNode('LeakyReLU', [x], [y]), { message: /LeakyRelu/, code: 'UNSUPPORTED_OPERATOR' });
  });

  it('with a type that an operator does not take says what it takes', async () => {
    const error = await refuse(oneNode('Conv', [info('x', 'string'), info('w', 'string')], [info('y', 'string')]), {
      message: /Conv[^]*string[^]*float/,
      code: 'INVALID_MODEL',
    });
    expect(error).toMatchObject({ opType: 'Conv' });
  });

  it('with inputs of types that must be the same', async () => {
    await refuse(oneNode('Add', [x, info('b', 'int32')], [y]), {
      message: /Add[^]*float[^]*int32/,
      code: 'INVALID_MODEL',
      fields: { opType: 'Add' },
    });
  });

  it.each<[string, ModelSpec, RegExp]>([
    ['too few inputs', { nodes: [node('Add', ['x'], ['y'])] }, /Add[^]*1 inputs/],
    ['too many inputs', { nodes: [node('Relu', ['x', 'x'], ['y'])] }, /Relu[^]*2 inputs/],
    ['an empty required input', { nodes: [node('Add', ['x', ''], ['y'])] }, /Add[^]*'B'/],
    ['too many outputs', { nodes: [node('Relu', ['x'], ['y', 'z'])] }, /Relu[^]*2 outputs/],
    [
      'a cycle',
      {
        nodes: [
          node('Add', ['x', 'b'], ['a'], { name: 'turn' }),
          node('Relu', ['a'], ['b']),
          node('Neg', ['b'], ['y']),
        ],
      },
      /cycle/,
    ],
    ['a node that feeds itself', { nodes: [node('Add', ['x', 'y'], ['y'])] }, /cycl|Add/],
    ['two values of one name', { nodes: [node('Relu', ['x'], ['y']), node('Neg', ['x'], ['y'])] }, /'y'/],
    ['an output named as an input', { nodes: [node('Relu', ['x'], ['x'])] }, /'x'/],
    ['two inputs of one name', { nodes: [node('Relu', ['x'], ['y'])], inputs: [x, x] }, /'x'/],
    [
      'two initializers of one name',
      {
        nodes: [node('Add', ['x', 'w'], ['y'])],
        initializers: [1, 2].map((v) => ({ name: 'w', type: 'float32', dims: [1], data: Float32Array.of(v) })),
      },
      /'w'/,
    ],
    [
      'an attribute of another type',
      { nodes: [node('Softmax', ['x'], ['y'], { attributes: { axis: 'one' } })] },
      /axis/,
    ],
    ['no required attribute', { nodes: [node('Cast', ['x'], ['y'])] }, /'to'/],
    ['an attribute of an unknown type', { nodes: [node('Cast', ['x'], ['y'], { attributes: { to: 99n } })] }, /99/],
  ])('with %s', async (_, spec, text) => {
    const error = await refuse({ inputs: [x], outputs: [y], ...spec }, { message: text, code: 'INVALID_MODEL' });
    expect(error.message).not.toMatch(/INTERNAL|std::/);
  });

  it('with an input of no type', async () => {
    const graph = message([1, message([1, 'x'], [2, 'y'], [4, 'Relu'])], [2, 'g'], [11, message([1, 'x'])], [12, message([1, 'y'])]); // prettier-ignore
    await refuse(message([1, 8], [7, graph], [8, message([1, ''], [2, 17])]), {
      message: /'x'[^]*type/,
      code: 'INVALID_MODEL',
      fields: { input: 'x' },
    });
  });

  it.each([100, 10_000])('with %i graphs in each other', async (depth) => {
    // Written from the inside out: what stands before the innermost graph, last part first, and what follows it.
    const before: Uint8Array[] = [message([1, message([1, 'k'], [2, 'z'], [4, 'Identity'])], [2, 'g'], [12, message([1, 'z'])])]; // prettier-ignore
    const after: Uint8Array[] = [];
    let size = before[0]!.length;
    const wrap = (number: number, first: Uint8Array, last: Uint8Array): void => {
      const prefix = lengthPrefix(number, size);
      before.push(prefix, first);
      after.push(last);
      size += prefix.length + first.length + last.length;
    };
    const nothing = new Uint8Array();
    for (let i = 0; i < depth; i++) {
      wrap(6, message([1, 'then_branch']), message([20, 5])); // an attribute that holds the graph
      wrap(5, message([1, 'c'], [2, 'z'], [4, 'If']), nothing); // a node that holds the attribute
      wrap(1, nothing, message([2, 'g'], [12, message([1, 'z'])])); // a graph that holds the node
    }
    const body = Buffer.concat([...before.reverse(), ...after]);
    const bytes = message([1, 8], [7, body], [8, message([1, ''], [2, 17])]);
    await refuse(bytes, { message: /nested|deep/, code: 'INVALID_MODEL' });
  });

  it('with types in each other without end', async () => {
    let type = message([1, message([1, 1])]);
    for (let i = 0; i < 10_000; i++) type = message([4, message([1, type])]);
    const graph = message([1, message([1, 'x'], [2, 'y'], [4, 'Identity'])], [2, 'g'], [11, message([1, 'x'], [2, type])], [12, message([1, 'y'])]); // prettier-ignore
    await refuse(message([1, 8], [7, graph], [8, message([1, ''], [2, 17])]), {
      message: /deep/,
      code: 'INVALID_MODEL',
    });
  });

  it.each([
    ['overflow', [2 ** 40, 2 ** 40]],
    ['are negative', [-1]],
    ['are many', new Array(2000).fill(1)],
    ['are more than the data', [1 << 30]],
  ])('with a weight whose dims %s', async (_, dims) => {
    const weight = tensorProto({ name: 'w', type: 'float32', dims, data: Float32Array.of(1) });
    const graph = message([1, message([1, 'w'], [2, 'y'], [4, 'Identity'])], [2, 'g'], [5, weight], [12, message([1, 'y'])]); // prettier-ignore
    await refuse(message([1, 8], [7, graph], [8, message([1, ''], [2, 17])]), {
      message: /'w'/,
      code: 'INVALID_MODEL',
      fields: { input: 'w' },
    });
  });

  it('with functions that call each other', async () => {
    const call = (op: string, input: string, output: string) => message([1, input], [2, output], [4, op], [7, 'l']);
    const calls = (name: string, other: string) =>
      message([1, name], [4, 'a'], [5, 'b'], [7, call(other, 'a', 'b')], [9, message([1, 'l'], [2, 1])], [10, 'l']);
    const graph = message([1, call('F', 'x', 'y')], [2, 'g'], [11, message([1, 'x'], [2, message([1, message([1, 1])])])], [12, message([1, 'y'])]); // prettier-ignore
    const opsets = ['', 'l'].map((domain) => [8, message([1, domain], [2, 17])] as [number, Uint8Array]);
    await refuse(message([1, 8], [7, graph], ...opsets, [25, calls('F', 'G')], [25, calls('G', 'F')]), {
      message: /F|G/,
      code: 'INVALID_MODEL',
    });
  });

  it('with functions that grow without bound', async () => {
    const call = (op: string, input: string, output: string) => message([1, input], [2, output], [4, op], [7, 'l']);
    const level = (i: number) =>
      message([1, `F${i}`], [4, 'a'], [5, 'j'], ...Array.from({ length: 10 }, (_, j) => [7, call(`F${i + 1}`, j ? `${'abcdefghij'[j]}` : 'a', 'bcdefghijj'[j]!.repeat(j === 9 ? 1 : 1))] as [number, Uint8Array]).slice(0, 9), [9, message([1, 'l'], [2, 1])], [10, 'l']); // prettier-ignore
    const last = message([1, 'F9'], [4, 'a'], [5, 'b'], [7, message([1, 'a'], [2, 'b'], [4, 'Neg'])], [9, message([1, ''], [2, 17])], [10, 'l']); // prettier-ignore
    const graph = message([1, call('F0', 'x', 'y')], [2, 'g'], [11, message([1, 'x'], [2, message([1, message([1, 1])])])], [12, message([1, 'y'])]); // prettier-ignore
    const opsets = ['', 'l'].map((domain) => [8, message([1, domain], [2, 17])] as [number, Uint8Array]);
    const functions = Array.from({ length: 9 }, (_, i) => [25, level(i)] as [number, Uint8Array]);
    await refuse(message([1, 8], [7, graph], ...opsets, ...functions, [25, last]), {
      message: "the model's functions expand to more than 1000000 nodes",
      code: 'INVALID_MODEL',
    });
  });
});

describe.runIf(ours)('external data', () => {
  const weights = (external: { location: string; offset?: any; length?: any }): Uint8Array =>
    model({
      nodes: [node('Add', ['x', 'w'], ['y'])],
      inputs: [x],
      outputs: [y],
      initializers: [{ name: 'w', type: 'float32', dims: [2], data: Float32Array.of(0), external }],
    });
  const load = (external: Parameters<typeof weights>[0]) =>
    InferenceSession.create(write('external.onnx', weights(external)), quiet);

  it.each<[string, Parameters<typeof weights>[0]]>([
    ['is missing', { location: 'none.bin' }],
    ['is a folder', { location: 'sub' }],
    ['has no name', { location: '' }],
    ['has a NUL in its name', { location: 'a\0b' }],
    ['starts beyond the end', { location: 'eight.bin', offset: 9, length: 8 }],
    ['ends beyond the end', { location: 'eight.bin', offset: 4, length: 8 }],
    ['has an offset near the end of the numbers', { location: 'eight.bin', offset: '18446744073709551615', length: 8 }],
    ['has an offset beyond all numbers', { location: 'eight.bin', offset: '99999999999999999999' }],
    ['has a negative offset', { location: 'eight.bin', offset: -8 }],
    ['has a length that does not fit', { location: 'eight.bin', length: 4 }],
    ['lies above the folder', { location: '../eight.bin' }],
    ['lies above through a folder', { location: 'sub/../../eight.bin' }],
    ['is named from the root', { location: '/etc/hostname' }],
    ['is a link to outside', { location: 'link.bin' }],
    ['is in a folder that is a link to outside', { location: 'linked/eight.bin' }],
  ])('that %s names the weight', async (_, external) => {
    mkdirSync(join(folder, 'sub'), { recursive: true });
    write('eight.bin', new Uint8Array(8));
    const outside = mkdtempSync(join(tmpdir(), 'infernode-outside-'));
    writeFileSync(join(outside, 'eight.bin'), new Uint8Array(8));
    try {
      for (const [target, path] of [
        [join(outside, 'eight.bin'), 'link.bin'],
        [outside, 'linked'],
      ] as const) {
        rmSync(join(folder, path), { force: true });
        symlinkSync(target, join(folder, path));
      }
      const error = await failureOf(() => load(external));
      expect(['IO', 'INVALID_MODEL']).toContain(error.code);
      expect(error.message).toMatch(/\bw\b/);
    } finally {
      rmSync(outside, { recursive: true });
    }
  });

  it('that is a hard link or a link within the folder is read', async () => {
    write('eight.bin', new Uint8Array(Float32Array.of(1, 2).buffer));
    for (const [path, link] of [
      ['hard.bin', linkSync],
      ['soft.bin', symlinkSync],
    ] as const) {
      rmSync(join(folder, path), { force: true });
      link(link === linkSync ? join(folder, 'eight.bin') : 'eight.bin', join(folder, path));
      const session = await load({ location: path });
      expect([...(await session.run({ x: floats([1, 1]) })).y.data]).toEqual([2, 3]);
      await session.release();
    }
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
    const error = await failureOf(() => bystander.run({ a: floats([1, 2]), b: floats([1, 2]) }, options));
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

  it('of memory within a limit of its own', async () => {
    const session = await create(fill, { memoryLimit: 1 << 20 });
    const error = await failureOf(() => session.run({ s: int64s(1 << 20) }));
    expect(error).toMatchObject({ code: 'OUT_OF_MEMORY' });
    expect((await session.run({ s: int64s(3) })).y.dims).toEqual([3]);
    await session.release();
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

describe.runIf(ours && process.platform !== 'win32')('a pipe', () => {
  const pipe = join(folder, 'pipe');
  beforeAll(() => expect(spawnSync('mkfifo', [pipe]).status).toBe(0));

  it.each([
    ['the model', () => InferenceSession.create(pipe, quiet)],
    ['external data', () => create(external('pipe.bin'), { externalData: [{ path: 'pipe.bin', data: pipe }] })],
  ] as const)('is not waited for as %s', async (_, load) => {
    await expectFailure(load, { message: /pipe.*: it is not a regular file/, code: 'IO' });
  });

  it('is not replaced by an optimized model', async () => {
    await expectFailure(() => create(add(), { optimizedModelFilePath: pipe }), {
      message: /pipe.*: it is not a regular file/,
      code: 'IO',
    });
    expect(statSync(pipe).isFIFO()).toBe(true);
  });
});

describe.runIf(ours)('external data given by the caller', () => {
  const given = (data: unknown) => create(external('w.bin'), { externalData: [{ path: 'w.bin', data }] });

  it('that was transferred elsewhere is refused', async () => {
    const data = new ArrayBuffer(8);
    structuredClone(data, { transfer: [data] });
    await expectFailure(() => given(data), {
      message: /'externalData\[0\]\.data' is detached/,
      type: TypeError,
      code: 'INVALID_ARGUMENT',
    });
  });

  it('may change right after the call, as the model may', async () => {
    const bytes = external('w.bin');
    const data = new Uint8Array(Float32Array.of(3, 4).buffer);
    const loading = InferenceSession.create(bytes, { ...quiet, externalData: [{ path: 'w.bin', data }] });
    bytes.fill(0);
    data.fill(0);
    const session = await loading;
    const { y } = await session.run({ x: floats([1, 1]) });
    expect([...y.data]).toEqual([4, 5]);
    await session.release();
  });

  it('that only looks like a Blob is refused', async () => {
    await expectFailure(() => given({ arrayBuffer: () => 5 }), {
      message: "'externalData[0].data' must give an ArrayBuffer, got number",
      type: TypeError,
      code: 'INVALID_ARGUMENT',
    });
  });
});
