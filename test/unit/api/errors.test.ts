import { spawnSync } from 'node:child_process';
import { beforeAll, describe, expect, it } from 'vitest';
import { projectRoot } from '../../../scripts/lib/engine.mjs';
import { expectFailure, failureOf, floats, ort, ours, tensor } from '../../fixtures/engine.js';
import { add, gather, identity, matmul } from '../../fixtures/models.js';
import { oneNode, type TensorInfo } from '../../fixtures/onnx-writer.js';
import { withBystander } from '../support/bystander.js';

const { InferenceSession } = ort;
const quiet = { logSeverityLevel: 4 };
const y: TensorInfo = { name: 'y', type: 'float32', shape: [2] };
const x: TensorInfo = { name: 'x', type: 'float32', shape: [2] };
const bystander = withBystander();

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
      message: ours
        ? 'Tensor.dims must be an array, got undefined. Wrap the Float32Array: new Tensor(type, data, dims).'
        : 'Tensor.dims must be an array',
      code: 'INVALID_ARGUMENT',
      fields: { input: 'a' },
    });
  });

  it('of another type', async () => {
    const error = await expectFailure(() => session.run({ a: tensor('int32', Int32Array.of(1, 2), [2]), b: b() }), {
      message: 'Unexpected input data type. Actual: (tensor(int32)) , expected: (tensor(float))',
      code: 'INVALID_ARGUMENT',
      fields: { input: 'a', expected: 'tensor(float)', actual: 'tensor(int32)' },
    });
    if (ours) expect(error.message).toMatch(/ A 'int32' tensor was given for 'float32'\.$/);
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
        'Please fix either the inputs/outputs or the model. [3] was given for [2].';
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

describe('a model whose output is declared with another type than it computes', () => {
  it('is refused', async () => {
    const declared = oneNode('Neg', [x], [{ ...y, type: 'float64' }]);
    await expectFailure(() => InferenceSession.create(declared, quiet), {
      message: /Type \(tensor\(double\)\) of output arg \(y\).* does not match expected type \(tensor\(float\)\)/,
      code: 'INVALID_MODEL',
      fields: { output: 'y', expected: 'tensor(float)', actual: 'tensor(double)' },
    });
  });
});

describe('every error', () => {
  it.runIf(ours)('has one of the known codes and the caller in its stack', async () => {
    const error = await failureOf(async function theCaller() {
      return await bystander.session.run({});
    });
    expect(error.code).toBe('INVALID_ARGUMENT');
    expect(error.name).toBe('Error');
    expect(error).toBeInstanceOf(ort.InferenceError);
    expect(error.stack).toContain('theCaller');
  });
});
