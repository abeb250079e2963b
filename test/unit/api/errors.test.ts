import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { expectFailure, failureOf, floats, ort, ours, tensor } from '../../fixtures/engine.js';
import { add, gather, identity, matmul } from '../../fixtures/models.js';
import { model, node, oneNode, type TensorInfo } from '../../fixtures/onnx-writer.js';

const { InferenceSession } = ort;
const quiet = { logSeverityLevel: 4 };
const folder = mkdtempSync(join(tmpdir(), 'infernode-'));
afterAll(() => rmSync(folder, { recursive: true }));

const x: TensorInfo = { name: 'x', type: 'float32', shape: [2] };
const y: TensorInfo = { name: 'y', type: 'float32', shape: [2] };

// Nothing that goes wrong in one session may touch another.
let bystander: any;
beforeAll(async () => {
  bystander = await InferenceSession.create(add());
});
afterEach(async () => {
  const { c } = await bystander.run({ a: floats([1, 2]), b: floats([10, 20]) });
  expect([...c.data]).toEqual([11, 22]);
});

describe('feeds', () => {
  let session: any;
  beforeAll(async () => {
    session = await InferenceSession.create(add());
  });
  const b = () => floats([3, 4]);

  it('that lack an input name it', async () => {
    await expectFailure(() => session.run({ a: b() }), {
      message: "input 'b' is missing in 'feeds'.",
      code: 'INVALID_ARGUMENT',
      fields: { input: 'b' },
    });
  });

  it('with a misspelt input name what is missing', async () => {
    const words = await InferenceSession.create(oneNode('Identity', [{ ...x, name: 'input_ids' }], [y], { model: {} }));
    const error = await expectFailure(() => words.run({ input_id: floats([1, 2]) }), {
      message: "input 'input_ids' is missing in 'feeds'.",
      code: 'INVALID_ARGUMENT',
      fields: { input: 'input_ids' },
    });
    if (ours) expect(error.message).toContain("'input_id'"); // the nearest name that was given
  });

  it.each([
    ['null', null],
    ['a number', 5],
    ['a string', 'x'],
  ])('of %s are no tensors', async (_, value) => {
    await expectFailure(() => session.run({ a: value, b: b() }), {
      type: TypeError,
      message: 'Tensor must be an object',
      code: 'INVALID_ARGUMENT',
      fields: { input: 'a' },
    });
  });

  it('of a bare typed array are no tensors', async () => {
    await expectFailure(() => session.run({ a: Float32Array.of(1, 2), b: b() }), {
      type: TypeError,
      message: 'Tensor.dims must be an array',
      code: 'INVALID_ARGUMENT',
      fields: { input: 'a' },
    });
  });

  it('of another type', async () => {
    await expectFailure(() => session.run({ a: tensor('int32', Int32Array.of(1, 2), [2]), b: b() }), {
      message: 'Unexpected input data type. Actual: (tensor(int32)) , expected: (tensor(float))',
      code: 'INVALID_ARGUMENT',
      fields: { input: 'a', expected: 'tensor(float)', actual: 'tensor(int32)' },
    });
  });

  it('of another size', async () => {
    await expectFailure(() => session.run({ a: floats([1, 2, 3]), b: b() }), {
      message:
        /Got invalid dimensions for input: a for the following indices[^]*Got: 3 Expected: 2[^]*Please fix either the inputs\/outputs or the model\./,
      code: 'SHAPE_MISMATCH',
      fields: { input: 'a', expected: '[2]', actual: '[3]' },
    });
  });

  it('of another rank', async () => {
    await expectFailure(() => session.run({ a: floats([1, 2], [1, 2]), b: b() }), {
      message: 'Invalid rank for input: a Got: 2 Expected: 1',
      code: 'SHAPE_MISMATCH',
      fields: { input: 'a', expected: '[2]', actual: '[1,2]' },
    });
  });

  it('whose dims were changed so that the data is short', async () => {
    const grown = floats([1, 2, 3], [3]);
    grown.dims = [2, 4];
    const free = await InferenceSession.create(identity('float32'));
    await expectFailure(() => free.run({ input: grown }), {
      message: ours ? /does not fit|not enough space/ : 'not enough space: expected 32, got 12',
      code: 'INVALID_ARGUMENT',
      fields: { input: 'input' },
    });
    await free.release();
  });

  it('whose buffer was given away', async () => {
    const sent = floats([1, 2]);
    structuredClone(sent.data.buffer, { transfer: [sent.data.buffer] });
    await expectFailure(() => session.run({ a: sent, b: b() }), {
      message: ours ? /does not fit|not enough space|detached/ : 'not enough space: expected 8, got 0',
      code: 'INVALID_ARGUMENT',
      fields: { input: 'a' },
    });
  });

  it.runIf(ours)('whose getters dispose of the session or of the bytes', async () => {
    const victim = await InferenceSession.create(add());
    const other = floats([1, 2]);
    const trap = {
      type: 'float32',
      dims: [2],
      location: 'cpu',
      get data() {
        structuredClone(other.data.buffer, { transfer: [other.data.buffer] });
        void victim.release();
        return Float32Array.of(1, 2);
      },
    };
    await failureOf(() => victim.run({ a: other, b: trap }));
  });

  it('that disagree with each other at run time name the node', async () => {
    const products = await InferenceSession.create(matmul(), quiet);
    await expectFailure(() => products.run({ a: floats([1, 2], [1, 2]), b: floats([1, 2, 3], [3, 1]) }, quiet), {
      message: /MatMul/,
      fields: { opType: 'MatMul' },
    });
    await products.release();
  });

  it('with an index out of range name the node', async () => {
    const lookup = await InferenceSession.create(gather(), quiet);
    await expectFailure(() => lookup.run({ indices: tensor('int64', [0n, 7n], [2]) }, quiet), {
      message: /running Gather node[^]*lookup/,
      fields: { node: 'lookup', opType: 'Gather' },
    });
    expect([...(await lookup.run({ indices: tensor('int64', [2n, -3n], [2]) })).y.data]).toEqual([30, 10]);
    await lookup.release();
  });

  it('for an output of another shape name the output', async () => {
    await expectFailure(() => session.run({ a: b(), b: b() }, { c: floats([1, 2, 3]) }), { message: /\bc\b/ });
    await expectFailure(() => session.run({ a: b(), b: b() }, { c: tensor('int32', Int32Array.of(1, 2), [2]) }), {
      message: /\bc\b|output/,
    });
  });
});

describe('a file that is no model', () => {
  const pointer = 'version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 12345\n';
  const whole = add();
  const cut = whole.subarray(0, whole.length - 20);
  const zip = Uint8Array.of(0x50, 0x4b, 3, 4, 20, 0, 0, 0, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);

  it.each<[string, Uint8Array | string, RegExp]>([
    ['HTML', '<!DOCTYPE html><html><body>Not found</body></html>', /HTML/i],
    ['a Git LFS pointer', pointer, /LFS/],
    ['a ZIP archive', zip, /zip/i],
    ['cut off', cut, /truncated|cut|ends|protobuf/i],
  ])('%s, is refused', async (kind, content, looksLike) => {
    const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content;
    const path = join(folder, `${kind.replace(/ /g, '-')}.onnx`);
    writeFileSync(path, bytes);
    const fromBytes = await expectFailure(() => InferenceSession.create(bytes, quiet), {
      message: /failed/,
      code: 'INVALID_MODEL',
    });
    const fromPath = await expectFailure(() => InferenceSession.create(path, quiet), {
      message: /failed/,
      code: 'INVALID_MODEL',
      fields: { path },
    });
    if (ours) for (const { message } of [fromBytes, fromPath]) expect(message).toMatch(looksLike);
  });

  it('but empty, is refused', async () => {
    writeFileSync(join(folder, 'empty.onnx'), '');
    await expectFailure(() => InferenceSession.create(new Uint8Array(0), quiet), {
      message: /./,
      code: 'INVALID_MODEL',
    });
    await expectFailure(() => InferenceSession.create(new ArrayBuffer(0), quiet), {
      message: /./,
      code: 'INVALID_MODEL',
    });
    const error = await expectFailure(() => InferenceSession.create(join(folder, 'empty.onnx'), quiet), {
      message: /graph|empty/,
      code: 'INVALID_MODEL',
    });
    if (ours) expect(error.message).toMatch(/empty/);
  });

  it('but a folder, is refused', async () => {
    mkdirSync(join(folder, 'folder.onnx'));
    await expectFailure(() => InferenceSession.create(join(folder, 'folder.onnx'), quiet), {
      message: /./,
      code: 'IO',
    });
  });

  it('with any one byte changed, never ends the process', async () => {
    const feeds = { a: floats([1, 2]), b: floats([3, 4]) };
    for (let i = 0; i < whole.length; i++) {
      for (const mask of [0x01, 0x80, 0xff]) {
        const flipped = whole.slice();
        flipped[i]! ^= mask;
        const session = await InferenceSession.create(flipped, quiet).catch((error: Error) => {
          expect(error).toBeInstanceOf(Error);
        });
        await session?.run(feeds, quiet).catch((error: Error) => expect(error).toBeInstanceOf(Error));
        await session?.release();
      }
    }
  });
});

describe('a model', () => {
  const refuse = (bytes: Uint8Array, expected: Parameters<typeof expectFailure>[1]) =>
    expectFailure(() => InferenceSession.create(bytes, quiet), expected);

  it('with an operator that does not exist', async () => {
    await refuse(oneNode('Frobnicate', [x], [y], { name: 'odd' }), {
      message: /Frobnicate/,
      code: 'UNSUPPORTED_OPERATOR',
      fields: { opType: 'Frobnicate' },
    });
  });

  it('with an operator of an unknown domain', async () => {
    const opsets = { 'com.example': 1 };
    await refuse(oneNode('Frobnicate', [x], [y], { domain: 'com.example', model: { opsets } }), {
      message: /is not a registered function\/op/,
      code: 'UNSUPPORTED_OPERATOR',
    });
  });

  it.runIf(ours)('with many such operators names them all', async () => {
    const names = Array.from({ length: 10 }, (_, i) => `Unheard${i}`);
    const nodes = names.map((name, i) => node(name, [i ? `v${i - 1}` : 'x'], [i === 9 ? 'y' : `v${i}`]));
    const error = await refuse(model({ nodes, inputs: [x], outputs: [y] }), {
      message: /./,
      code: 'UNSUPPORTED_OPERATOR',
    });
    for (const name of names) expect(error.message).toContain(name);
  });

  it('that imports an unknown domain without using it loads', async () => {
    const session = await InferenceSession.create(
      oneNode('Identity', [x], [y], { model: { opsets: { 'com.example': 1 } } }),
    );
    expect([...(await session.run({ x: floats([1, 2]) })).y.data]).toEqual([1, 2]);
    await session.release();
  });

  it('with an operator that has no kernel for the type', async () => {
    const strings = (name: string): TensorInfo => ({ name, type: 'string', shape: [1, 1, 4, 4] });
    const error = await failureOf(() =>
      InferenceSession.create(oneNode('Conv', [strings('x'), strings('w')], [strings('y')]), quiet),
    );
    expect(error.message).toMatch(/Conv/);
    if (ours) expect(['UNSUPPORTED_OPERATOR', 'INVALID_MODEL']).toContain(error.code);
  });

  it('of a future operator set', async () => {
    await refuse(oneNode('Identity', [x], [y], { model: { opset: 999 } }), {
      message: /ValidateOpsetForDomain/,
      code: 'INVALID_MODEL',
    });
  });

  it('of a future format', async () => {
    await refuse(oneNode('Identity', [x], [y], { model: { irVersion: 99 } }), {
      message: /Unsupported model IR version: 99, max supported IR version: \d+/,
      code: 'INVALID_MODEL',
    });
  });

  it('with a cycle', async () => {
    const nodes = [node('Add', ['x', 'b'], ['a']), node('Identity', ['a'], ['b']), node('Identity', ['b'], ['y'])];
    await refuse(model({ nodes, inputs: [x], outputs: [y] }), { message: /./, code: 'INVALID_MODEL' });
  });

  it('with one name for two values', async () => {
    const nodes = [node('Relu', ['x'], ['y']), node('Neg', ['x'], ['y'])];
    await refuse(model({ nodes, inputs: [x], outputs: [y] }), { message: /\by\b/, code: 'INVALID_MODEL' });
  });

  it('with an input that nothing makes', async () => {
    await refuse(model({ nodes: [node('Add', ['x', 'ghost'], ['y'])], inputs: [x], outputs: [y] }), {
      message: /ghost/,
      code: 'INVALID_MODEL',
    });
  });

  it('with an output that nothing makes', async () => {
    await refuse(model({ nodes: [node('Relu', ['x'], ['z'])], inputs: [x], outputs: [y] }), {
      message: /\by\b/,
      code: 'INVALID_MODEL',
    });
  });

  it('with a weight shorter than its dims', async () => {
    const initializers = [{ name: 'w', type: 'float32' as const, dims: [1000], data: Float32Array.of(1) }];
    await refuse(model({ nodes: [node('Add', ['x', 'w'], ['y'])], inputs: [x], outputs: [y], initializers }), {
      message: /./,
      code: 'INVALID_MODEL',
    });
  });

  it('with dims whose product overflows', async () => {
    const dims = [2 ** 31, 2 ** 31, 2 ** 31];
    const initializers = [{ name: 'w', type: 'float32' as const, dims, data: Float32Array.of(1) }];
    await refuse(model({ nodes: [node('Add', ['x', 'w'], ['y'])], inputs: [x], outputs: [y], initializers }), {
      message: /./,
      code: 'INVALID_MODEL',
    });
  });
});

describe('external data', () => {
  const withWeights = (location: string, length = 8): Uint8Array =>
    model({
      nodes: [node('Add', ['x', 'w'], ['y'])],
      inputs: [x],
      outputs: [y],
      initializers: [
        { name: 'w', type: 'float32', dims: [2], data: Float32Array.of(0), external: { location, offset: 0, length } },
      ],
    });
  const write = (name: string, bytes: Uint8Array): string => {
    writeFileSync(join(folder, name), bytes);
    return join(folder, name);
  };

  it('is found beside the model', async () => {
    write('here.bin', new Uint8Array(Float32Array.of(100, 200).buffer));
    const session = await InferenceSession.create(write('here.onnx', withWeights('here.bin')));
    expect([...(await session.run({ x: floats([1, 2]) })).y.data]).toEqual([101, 202]);
    await session.release();
  });

  it('that is missing names the weight', async () => {
    await expectFailure(() => InferenceSession.create(write('a.onnx', withWeights('none.bin')), quiet), {
      message: /External data path validation failed for initializer: w[^]*none\.bin|w[^]*none\.bin/,
    });
  });

  it('that is too short says so', async () => {
    write('short.bin', Uint8Array.of(1, 2, 3, 4));
    const error = await failureOf(() => InferenceSession.create(write('b.onnx', withWeights('short.bin')), quiet));
    expect(error.message).toMatch(/short\.bin|out of bounds|can not be read in full|\bw\b/);
    if (ours) expect(['IO', 'INVALID_MODEL']).toContain(error.code);
  });

  it.each(['../outside.bin', '/etc/hostname', 'sub/../../outside.bin'])(
    'outside the folder is refused: %s',
    async (location) => {
      mkdirSync(join(folder, 'inner'), { recursive: true });
      write('outside.bin', new Uint8Array(8));
      const error = await expectFailure(
        () => InferenceSession.create(write('inner/c.onnx', withWeights(location)), quiet),
        { message: /./, code: 'INVALID_MODEL' },
      );
      if (ours) expect(error.message).toMatch(/escapes model directory|absolute|outside/);
    },
  );
});

describe('every error', () => {
  it.runIf(ours)('has one of the known codes and the caller in its stack', async () => {
    const error = await failureOf(async function theCaller() {
      return await bystander.run({});
    });
    expect(error.code).toBe('INVALID_ARGUMENT');
    expect(error.name).toBe('Error');
    expect(error).toBeInstanceOf(ort.InferenceError);
    expect(error.stack).toContain('theCaller');
  });
});
