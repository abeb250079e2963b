import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { expectFailure, failureOf, floats, ort, ours, tensor } from '../../fixtures/engine.js';
import { add, gather, identity, matmul } from '../../fixtures/models.js';
import { model, node, oneNode, type TensorInfo } from '../../fixtures/onnx-writer.js';
import { projectRoot } from '../../../scripts/lib/engine.mjs';

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
    if (ours) expect(error.message).toBe("input 'input_ids' is missing in 'feeds'. Was it meant by 'input_id'?");
  });

  it.runIf(ours)('do not take one input for another that is misspelt', async () => {
    const error = await failureOf(() => session.run({ a: b() }));
    expect(error.message).toBe("input 'b' is missing in 'feeds'.");
  });

  it.runIf(ours)('that lack several inputs name them all', async () => {
    const three = await InferenceSession.create(
      oneNode(
        'Sum',
        ['p', 'q', 'r'].map((name) => ({ ...x, name })),
        [y],
        { model: {} },
      ),
    );
    const message = async (feeds: object) => (await failureOf(() => three.run(feeds))).message;
    expect(await message({})).toBe("input 'p' is missing in 'feeds'. So are 'q', 'r'.");
    expect(await message({ q: b() })).toBe("input 'p' is missing in 'feeds'. So is 'r'.");
    expect(await message({ p: b(), qq: b() })).toMatch(/^input 'q' is missing in 'feeds'\. So is 'r'\./);
  });

  it('may have more than the model asks for', async () => {
    const { c } = await session.run({ a: b(), b: b(), other: 'not even a tensor' });
    expect([...c.data]).toEqual([6, 8]);
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
      message: 'Tensor.dims must be an array, got undefined. Wrap the Float32Array: new Tensor(type, data, dims).',
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
    const error = await expectFailure(() => session.run({ a: floats([1, 2], [1, 2]), b: b() }), {
      message: 'Invalid rank for input: a Got: 2 Expected: 1',
      code: 'SHAPE_MISMATCH',
      fields: { input: 'a', expected: '[2]', actual: '[1,2]' },
    });
    const text =
      'Invalid rank for input: a Got: 2 Expected: 1 ([1,2] for [2]). Please fix either the inputs/outputs or the model.';
    if (ours) expect(error.message).toBe(text);
  });

  it.runIf(ours)(
    'fail alike on the calling thread, on another one and bound, each with its caller in the stack',
    async () => {
      const wrong = { a: floats([1, 2, 3]), b: b() };
      const text =
        'Got invalid dimensions for input: a for the following indices\n index: 0 Got: 3 Expected: 2\n ' +
        'Please fix either the inputs/outputs or the model.';
      const big = await InferenceSession.create(matmul());
      const binding = session.createIoBinding();
      binding.bindInput('a', wrong.a).bindInput('b', wrong.b);
      const rejected = session.run(wrong); // not awaited by the function that calls it
      for (const action of [
        async function theCaller() { await session.run(wrong); }, // prettier-ignore
        async function theCaller() { session.runSync(wrong); }, // prettier-ignore
        async function theCaller() { await session.run(binding); }, // prettier-ignore
      ]) {
        const error = await failureOf(action);
        expect(error).toMatchObject({
          message: text,
          code: 'SHAPE_MISMATCH',
          input: 'a',
          expected: '[2]',
          actual: '[3]',
        });
        expect(error.stack).toContain('theCaller');
      }
      const error = await failureOf(() => rejected);
      expect(error.message).toBe(text);
      expect(error.stack).toContain('errors.test.ts');
      await big.release();
    },
  );

  it.runIf(ours)('of symbolic dims show them where the rank is wrong', async () => {
    const shape = ['batch', '', 4];
    const free = await InferenceSession.create(oneNode('Identity', [{ ...x, shape }], [{ ...y, shape }]));
    const error = await failureOf(() => free.run({ x: floats([1]) }));
    expect(error).toMatchObject({ code: 'SHAPE_MISMATCH', input: 'x', expected: '[batch,?,4]', actual: '[1]' });
    await free.release();
  });

  it('of one element satisfy a declared scalar', async () => {
    const scalar = await InferenceSession.create(oneNode('Neg', [{ ...x, shape: [] }], [{ ...y, shape: [] }]), quiet);
    expect([...(await scalar.run({ x: floats([5], [1]) }, quiet)).y.data]).toEqual([-5]);
    if (ours) {
      expect(await failureOf(() => scalar.run({ x: floats([5, 6], [2]) }))).toMatchObject({
        message: 'Invalid rank for input: x Got: 1 Expected: 0 ([2] for []). Please fix either the inputs/outputs or the model.', // prettier-ignore
        code: 'SHAPE_MISMATCH',
        expected: '[]',
        actual: '[2]',
      });
    }
    await scalar.release();
  });

  it('that are disposed of are refused', async () => {
    const gone = floats([1, 2]);
    gone.dispose();
    await expectFailure(() => session.run({ a: gone, b: b() }), {
      type: RangeError,
      message: 'Tensor.location is not supported.',
      code: 'DISPOSED',
      fields: { input: 'a' },
    });
  });

  it('whose dims were changed so that the data is short', async () => {
    const grown = floats([1, 2, 3], [3]);
    grown.dims = [2, 4];
    const free = await InferenceSession.create(identity('float32'));
    await expectFailure(() => free.run({ input: grown }), {
      message: ours
        ? "input 'input': the data of a float32 tensor of dims [2,4] does not fit: not enough space: expected 32, got 12."
        : 'not enough space: expected 32, got 12',
      code: 'INVALID_ARGUMENT',
      fields: { input: 'input' },
    });
    await free.release();
  });

  it('whose buffer was given away', async () => {
    const sent = floats([1, 2]);
    structuredClone(sent.data.buffer, { transfer: [sent.data.buffer] });
    await expectFailure(() => session.run({ a: sent, b: b() }), {
      message: ours
        ? "input 'a': the data of a float32 tensor of dims [2] does not fit: not enough space: expected 8, got 0 (is its ArrayBuffer detached?)."
        : 'not enough space: expected 8, got 0',
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
    const error = await failureOf(() => victim.run({ a: other, b: trap }));
    expect(error.code).toMatch(/^(DISPOSED|INVALID_ARGUMENT)$/);
  });

  it.runIf(ours)('of a sequence whose tensors are of another type', async () => {
    const list: TensorInfo = { name: 'list', type: 'float32', shape: ['n'], kind: 'sequence' };
    const lengths = await InferenceSession.create(
      oneNode('SequenceLength', [list], [{ name: 'n', type: 'int64', shape: [] }]),
    );
    expect((await lengths.run({ list: [floats([1]), floats([2, 3])] })).n.data).toEqual(BigInt64Array.of(2n));
    await expectFailure(() => lengths.run({ list: [floats([1]), tensor('int32', Int32Array.of(1), [1])] }), {
      message: "input 'list': Unexpected input data type. Actual: (tensor(int32)) , expected: (tensor(float))",
      code: 'INVALID_ARGUMENT',
      fields: { input: 'list', expected: 'tensor(float)', actual: 'tensor(int32)' },
    });
    await lengths.release();
  });

  it('that disagree with each other at run time name the node', async () => {
    const products = await InferenceSession.create(matmul(), quiet);
    await expectFailure(() => products.run({ a: floats([1, 2], [1, 2]), b: floats([1, 2, 3], [3, 1]) }, quiet), {
      message: ours ? "MatMul producing 'c': MatMul dimension mismatch: [1,2] x [3,1]" : /MatMul/,
      code: 'SHAPE_MISMATCH',
      fields: { opType: 'MatMul' },
    });
    await products.release();
  });

  it('with an index out of range name the node', async () => {
    const lookup = await InferenceSession.create(gather(), quiet);
    await expectFailure(() => lookup.run({ indices: tensor('int64', [0n, 7n], [2]) }, quiet), {
      message:
        /^Non-zero status code returned while running Gather node\. Name:'lookup' [^]*indices element out of data bounds, idx=7 must be within the inclusive range \[-3,2\]/,
      code: 'INVALID_ARGUMENT',
      fields: { node: 'lookup', opType: 'Gather' },
    });
    expect([...(await lookup.run({ indices: tensor('int64', [2n, -3n], [2]) })).y.data]).toEqual([30, 10]);
    await lookup.release();
  });

  it('for an output of another shape name the output', async () => {
    const ofShape = { c: floats([1, 2, 3]) };
    await expectFailure(() => session.run({ a: b(), b: b() }, ofShape), {
      message: ours ? "output 'c' is float32[2], which does not fit into the preallocated float32[3]" : /\bc\b/,
      code: 'SHAPE_MISMATCH',
      fields: { output: 'c', expected: 'float32[3]', actual: 'float32[2]' },
    });
    expect([...ofShape.c.data]).toEqual([1, 2, 3]);
    await expectFailure(() => session.run({ a: b(), b: b() }, { c: tensor('int32', Int32Array.of(1, 2), [2]) }), {
      message: ours
        ? "output 'c': Unexpected output data type. Actual: (tensor(int32)) , expected: (tensor(float))"
        : /\bc\b|output/,
      code: 'INVALID_ARGUMENT',
      fields: { output: 'c', expected: 'tensor(float)', actual: 'tensor(int32)' },
    });
  });
});

describe('a file that is no model', () => {
  const pointer = 'version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 12345\n';
  const whole = add();
  const cut = whole.subarray(0, whole.length - 20);
  const zip = Uint8Array.of(0x50, 0x4b, 3, 4, 20, 0, 0, 0, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);

  const page =
    'It looks like an HTML page: the download gave a web page, perhaps an error or a login, instead of the file; check its address.';
  const lfs = "It looks like a Git LFS pointer to a file of 12345 bytes: run 'git lfs pull' to fetch the file itself.";
  const archive = 'It looks like a zip archive: unpack it and load the .onnx file inside.';
  const end = 'It is truncated at byte 81: field 7 reaches beyond the end, from byte 19 on. Fetch or export it again.';
  const nothing = 'It is empty: the download or export did not finish.';

  it.each<[string, Uint8Array | string, string]>([
    ['HTML', '<!DOCTYPE html><html><body>Not found</body></html>', page],
    ['a Git LFS pointer', pointer, lfs],
    ['a ZIP archive', zip, archive],
    ['cut off', cut, end],
  ])('%s, is refused', async (kind, content, looksLike) => {
    const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content;
    const path = join(folder, `${kind.replace(/ /g, '-')}.onnx`);
    writeFileSync(path, bytes);
    const fromBytes = await expectFailure(() => InferenceSession.create(bytes, quiet), {
      message: 'Failed to load model because protobuf parsing failed.',
      code: 'INVALID_MODEL',
    });
    const fromPath = await expectFailure(() => InferenceSession.create(path, quiet), {
      message: `Load model from ${path} failed:Protobuf parsing failed.`,
      code: 'INVALID_MODEL',
      fields: { path },
    });
    if (!ours) return;
    expect(fromBytes.message).toBe(`Failed to load model because protobuf parsing failed. ${looksLike}`);
    expect(fromPath.message).toBe(`Load model from ${path} failed:Protobuf parsing failed. ${looksLike}`);
  });

  it('but empty, is refused', async () => {
    const path = join(folder, 'empty.onnx');
    writeFileSync(path, '');
    for (const bytes of [new Uint8Array(0), new ArrayBuffer(0)]) {
      await expectFailure(() => InferenceSession.create(bytes, quiet), {
        message: ours ? `Failed to load model because protobuf parsing failed. ${nothing}` : /null|graph/,
        code: 'INVALID_MODEL',
      });
    }
    await expectFailure(() => InferenceSession.create(path, quiet), {
      message: ours ? `Load model from ${path} failed:Protobuf parsing failed. ${nothing}` : /graph/,
      code: 'INVALID_MODEL',
      fields: { path },
    });
  });

  it('but absent, is refused', async () => {
    const path = join(folder, 'absent.onnx');
    await expectFailure(() => InferenceSession.create(path, quiet), {
      message: `Load model from ${path} failed:Load model ${path} failed. File doesn't exist`,
      code: 'IO',
      fields: { path },
    });
  });

  it('but a folder, is refused', async () => {
    const path = join(folder, 'folder.onnx');
    mkdirSync(path);
    await expectFailure(() => InferenceSession.create(path, quiet), {
      message: ours ? `Load model from ${path} failed: it is not a regular file` : path,
      code: 'IO',
      fields: { path },
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
      message:
        /^This is an invalid model\. In Node, .*\bodd\b.*No Op registered for Frobnicate with domain_version of 17/,
      code: 'UNSUPPORTED_OPERATOR',
      fields: { node: 'odd', opType: 'Frobnicate' },
    });
  });

  it('with an operator of an unknown domain', async () => {
    const opsets = { 'com.example': 1 };
    await refuse(oneNode('Frobnicate', [x], [y], { domain: 'com.example', model: { opsets } }), {
      message: /Frobnicate[^]* is not a registered function\/op/,
      code: 'UNSUPPORTED_OPERATOR',
      fields: { opType: 'Frobnicate' },
    });
  });

  it.runIf(ours)('with many such operators names them all', async () => {
    const names = Array.from({ length: 10 }, (_, i) => `Unheard${i}`);
    const nodes = names.map((name, i) => node(name, [i ? `v${i - 1}` : 'x'], [i === 9 ? 'y' : `v${i}`]));
    const error = await refuse(model({ nodes, inputs: [x], outputs: [y] }), {
      message: 'This is an invalid model: 10 operators are not known:',
      code: 'UNSUPPORTED_OPERATOR',
      fields: { opType: 'Unheard0' },
    });
    expect(error.details).toHaveLength(10);
    names.forEach((name, i) => {
      expect(error.details[i]).toContain(`No Op registered for ${name} with domain_version of 17`);
      expect(error.message).toContain(error.details[i]);
    });
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
    await refuse(oneNode('Conv', [strings('x'), strings('w')], [strings('y')], { name: 'conv' }), {
      message: ours
        ? "Conv 'conv' has the type tensor(string) for input 'X'; Conv version 11 takes float32, float16, float64"
        : /Conv/,
      code: 'INVALID_MODEL',
      fields: { node: 'conv', opType: 'Conv' },
    });
  });

  it('of a future operator set', async () => {
    await refuse(oneNode('Identity', [x], [y], { model: { opset: 999 } }), {
      message: ours
        ? 'ValidateOpsetForDomain: the model imports opset 999 of ai.onnx, and 28 is the newest known here. Export it with opset 28 or lower, or update infernode.'
        : /ValidateOpsetForDomain/,
      code: 'INVALID_MODEL',
    });
  });

  it('of a future format', async () => {
    await refuse(oneNode('Identity', [x], [y], { model: { irVersion: 99 } }), {
      message: /^Unsupported model IR version: 99, max supported IR version: \d+/,
      code: 'INVALID_MODEL',
    });
  });

  it('with a cycle', async () => {
    const nodes = [node('Add', ['x', 'b'], ['a']), node('Identity', ['a'], ['b']), node('Identity', ['b'], ['y'])];
    await refuse(model({ nodes, inputs: [x], outputs: [y] }), {
      message: ours ? "the graph 'graph' has a cycle through node Add producing 'a'" : /graph/,
      code: 'INVALID_MODEL',
      fields: { opType: 'Add' },
    });
  });

  it('with one name for two values', async () => {
    const nodes = [node('Relu', ['x'], ['y']), node('Neg', ['x'], ['y'])];
    await refuse(model({ nodes, inputs: [x], outputs: [y] }), {
      message: ours
        ? "the name 'y' is defined more than once in graph 'graph': node Neg producing 'y' produces it again"
        : /\by\b/,
      code: 'INVALID_MODEL',
    });
  });

  it('with an input that nothing makes', async () => {
    await refuse(model({ nodes: [node('Add', ['x', 'ghost'], ['y'])], inputs: [x], outputs: [y] }), {
      message: ours
        ? "node Add producing 'y' in graph 'graph': its input 'ghost' is not an output of any node, an initializer or a graph input"
        : /ghost/,
      code: 'INVALID_MODEL',
      fields: { input: 'ghost', opType: 'Add' },
    });
  });

  it('with an output that nothing makes', async () => {
    await refuse(model({ nodes: [node('Relu', ['x'], ['z'])], inputs: [x], outputs: [y] }), {
      message: ours ? "output 'y' of graph 'graph' is produced by no node" : /\by\b/,
      code: 'INVALID_MODEL',
      fields: { output: 'y' },
    });
  });

  it('with a weight shorter than its dims', async () => {
    const initializers = [{ name: 'w', type: 'float32' as const, dims: [1000], data: Float32Array.of(1) }];
    await refuse(model({ nodes: [node('Add', ['x', 'w'], ['y'])], inputs: [x], outputs: [y], initializers }), {
      message: ours ? "tensor 'w': raw data of 4 bytes does not fit float32[1000], which takes 4000" : /\bw\b/,
      code: 'INVALID_MODEL',
      fields: { input: 'w' },
    });
  });

  it('with dims whose product overflows', async () => {
    const dims = [2 ** 31, 2 ** 31, 2 ** 31];
    const initializers = [{ name: 'w', type: 'float32' as const, dims, data: Float32Array.of(1) }];
    await refuse(model({ nodes: [node('Add', ['x', 'w'], ['y'])], inputs: [x], outputs: [y], initializers }), {
      message: ours
        ? "tensor 'w': dims [2147483648,2147483648,2147483648] have a product that overflows"
        : /overflow|size|bytes/,
      code: 'INVALID_MODEL',
      fields: { input: 'w' },
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
    const path = write('a.onnx', withWeights('none.bin'));
    await expectFailure(() => InferenceSession.create(path, quiet), {
      message: ours
        ? `Load model from ${path} failed:External data path validation failed for initializer: w. External data path does ` +
          `not exist: ${join(folder, 'none.bin')} (No such file or directory). Put the file next to the model, or pass it in externalData.`
        : /External data path validation failed for initializer: w/,
      code: 'IO',
      fields: { input: 'w', path: 'none.bin' },
    });
  });

  it('that is too short says how much is there', async () => {
    const short = write('short.bin', Uint8Array.of(1, 2, 3, 4));
    const path = write('b.onnx', withWeights('short.bin'));
    await expectFailure(() => InferenceSession.create(path, quiet), {
      message: ours
        ? `Load model from ${path} failed:External initializer: w offset: 0 size to read: 8 given file_length: 4 are out of ` +
          `bounds or can not be read in full: the file ${short} is too short. Fetch or export it again.`
        : /External initializer: w offset: 0 size to read: 8 given file_length: 4 are out of bounds or can not be read in full/,
      code: 'INVALID_MODEL',
      fields: { input: 'w', path: short },
    });
  });

  it('that the caller gives may be missing or too short', async () => {
    const given = (name: string) => ({ ...quiet, externalData: [{ path: name, data: new Uint8Array(4) }] });
    await expectFailure(() => InferenceSession.create(withWeights('w.bin'), given('other.bin')), {
      message: /External file: w\.bin not found from the table user provided/,
      code: 'INVALID_ARGUMENT',
      fields: { input: 'w', path: 'w.bin' },
    });
    await expectFailure(() => InferenceSession.create(withWeights('w.bin'), given('w.bin')), {
      message: /size to read: 8 given file_length: 4 are out of bounds or can not be read in full\./,
      code: 'INVALID_ARGUMENT',
      fields: { input: 'w', path: 'w.bin' },
    });
  });

  it.each([
    ['../outside.bin', 'it leads out of the folder'],
    ['/etc/hostname', 'it is absolute'],
    ['sub/../../outside.bin', 'it leads out of the folder'],
  ])('outside the folder is refused: %s', async (location, how) => {
    const inner = join(folder, 'inner');
    mkdirSync(inner, { recursive: true });
    write('outside.bin', new Uint8Array(8));
    const path = write('inner/c.onnx', withWeights(location));
    await expectFailure(() => InferenceSession.create(path, quiet), {
      message: ours
        ? `Load model from ${path} failed:External data path validation failed for initializer: w. External data path: ` +
          `${location} escapes model directory: ${inner} (${how})`
        : /External data path/,
      code: 'INVALID_MODEL',
      fields: { input: 'w', path: location },
    });
  });
});

describe('a warning', () => {
  const messages = (options: object, bytes: Uint8Array, feeds: object): string[] => {
    const program = `
      const ort = require(process.argv[1]);
      const { bytes, options, feeds } = JSON.parse(process.argv[2]);
      (async () => {
        const session = await ort.InferenceSession.create(Buffer.from(bytes, 'base64'), options);
        const tensors = Object.entries(feeds).map(([name, dims]) =>
          [name, new ort.Tensor('float32', new Float32Array(dims.reduce((a, b) => a * b, 1)), dims)]);
        for (let i = 0; i < 3; i++) await session.run(Object.fromEntries(tensors));
        await session.release();
      })();`;
    const input = JSON.stringify({ bytes: Buffer.from(bytes).toString('base64'), options, feeds });
    const { status, stderr } = spawnSync(process.execPath, ['-e', program, projectRoot, input], { encoding: 'utf8' });
    expect(status).toBe(0);
    return stderr.split('\n').filter(Boolean);
  };
  const symbolic = (name: string, shape: (string | number)[]): TensorInfo => ({ name, type: 'float32', shape });
  const joined = oneNode('Concat', [symbolic('a', ['N', 2]), symbolic('b', ['N', 2])], [symbolic('y', ['M', 2])], {
    attributes: { axis: 0n },
  });

  it.runIf(ours)('comes once where inputs give a symbol different sizes, however many runs there are', () => {
    expect(messages({}, joined, { a: [1, 2], b: [3, 2] })).toEqual([
      "[infernode:warning, run] inputs give dimension 'N' different sizes: 1 in 'a', 3 in 'b'; each is taken as it is",
    ]);
    expect(messages({}, joined, { a: [3, 2], b: [3, 2] })).toEqual([]);
    expect(messages({ logSeverityLevel: 3 }, joined, { a: [1, 2], b: [3, 2] })).toEqual([]);
  });

  it.runIf(ours)('comes of an override of a dimension that is not there, with those that are', () => {
    const options = { freeDimensionOverrides: { batch: 2 } };
    const warning = "[infernode:warning, load] freeDimensionOverrides: no input has a dimension named 'batch'; ";
    const square = oneNode('Neg', [symbolic('a', ['N', 'channels', 2])], [symbolic('y', ['N', 'channels', 2])]);
    expect(messages(options, square, { a: [1, 1, 2] })).toEqual([`${warning}the names are 'N', 'channels'`]);
    const fixed = oneNode('Neg', [symbolic('a', [2])], [symbolic('y', [2])]);
    expect(messages(options, fixed, { a: [2] })).toEqual([`${warning}no dimension of an input has a name`]);
  });

  it.runIf(ours)('comes where an output is declared with another shape than it has', async () => {
    const declared = oneNode('Neg', [symbolic('a', [2])], [symbolic('y', [3])]);
    expect(messages({}, declared, { a: [2] })).toEqual([
      "[infernode:warning, inference] value 'y' is declared as tensor(float)[3] but is tensor(float)[2]",
    ]);
    const session = await InferenceSession.create(declared, quiet);
    expect((await session.run({ a: floats([1, 2]) }, quiet)).y.dims).toEqual([2]);
    await session.release();
  });
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
