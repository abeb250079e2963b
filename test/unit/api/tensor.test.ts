import { describe, expect, it } from 'vitest';
import { expectFailure, failureOf, ort, ours } from '../../fixtures/engine.js';
import { identity } from '../../fixtures/models.js';
import type { ElementTypeName } from '../../fixtures/onnx-writer.js';

const { Tensor, InferenceSession } = ort;

const numeric: [ElementTypeName, any][] = [
  ['float32', Float32Array.of(1.5, -2, 0, 4, 5)],
  ['float64', Float64Array.of(1.5, -2, 0, 4, 5)],
  ['int8', Int8Array.of(1, -2, 0, 4, 5)],
  ['uint8', Uint8Array.of(1, 2, 0, 4, 255)],
  ['int16', Int16Array.of(1, -2, 0, 4, 5)],
  ['uint16', Uint16Array.of(1, 2, 0, 4, 65535)],
  ['int32', Int32Array.of(1, -2, 0, 4, 5)],
  ['uint32', Uint32Array.of(1, 2, 0, 4, 4294967295)],
  ['int64', BigInt64Array.of(1n, -2n, 0n, 4n, 5n)],
  ['uint64', BigUint64Array.of(1n, 2n, 0n, 4n, 2n ** 64n - 1n)],
  ['bool', Uint8Array.of(1, 0, 1, 0, 1)],
];

describe('a tensor', () => {
  it.each(numeric)('of %s keeps its data', (type, data) => {
    const tensor = new Tensor(type, data);
    expect(tensor.data).toBe(data);
    expect(tensor).toMatchObject({ type, dims: [5], size: 5, location: 'cpu' });
    expect(new Tensor(type, data, [5, 1]).dims).toEqual([5, 1]);
  });

  it('of strings keeps them', () => {
    const data = ['a', 'b'];
    expect(new Tensor('string', data).data).toBe(data);
    expect(new Tensor(data)).toMatchObject({ type: 'string', dims: [2] });
  });

  it.each([
    ['float32', Float32Array.of(1)],
    ['float64', Float64Array.of(1)],
    ['int8', Int8Array.of(1)],
    ['uint8', Uint8Array.of(1)],
    ['int16', Int16Array.of(1)],
    ['uint16', Uint16Array.of(1)],
    ['int32', Int32Array.of(1)],
    ['uint32', Uint32Array.of(1)],
    ['int64', BigInt64Array.of(1n)],
    ['uint64', BigUint64Array.of(1n)],
    ['bool', [true]],
  ])('infers %s from its data', (type, data) => {
    expect(new Tensor(data).type).toBe(type);
  });

  it('takes plain arrays where the type is said', () => {
    expect(new Tensor('float32', [1, 2]).data).toEqual(Float32Array.of(1, 2));
    expect(new Tensor('int64', [1, 2n]).data).toEqual(BigInt64Array.of(1n, 2n));
    expect([...new Tensor('bool', [true, false]).data]).toEqual([1, 0]);
    expect(new Tensor('float32', [7], []).dims).toEqual([]);
  });

  it('shares its data with its reshaped self', () => {
    const tensor = new Tensor('float32', Float32Array.of(1, 2, 3, 4));
    const reshaped = tensor.reshape([2, 2]);
    expect(reshaped.dims).toEqual([2, 2]);
    expect(reshaped.data).toBe(tensor.data);
  });

  it('has no data once disposed', async () => {
    const tensor = new Tensor('float32', Float32Array.of(1), [1]);
    expect(await tensor.getData()).toEqual(Float32Array.of(1));
    tensor.dispose();
    tensor.dispose();
    expect(tensor).toMatchObject({ location: 'none', type: 'float32', dims: [1] });
    for (const use of [() => tensor.data, () => tensor.getData(), () => tensor.reshape([1])]) {
      expect((await failureOf(use)).message).toMatch('disposed');
    }
  });

  it('of pinned memory says so', () => {
    expect(Tensor.fromPinnedBuffer('float32', Float32Array.of(1), [1]).location).toBe('cpu-pinned');
  });

  it.each<[string, unknown[], any]>([
    ['dims of an object', ['float32', Float32Array.of(1), {}], TypeError],
    ['dims of a string', ['float32', Float32Array.of(1), '1'], TypeError],
    ['dims of a typed array', ['float32', Float32Array.of(1), Int32Array.of(1)], TypeError],
    ['a negative dim', ['float32', Float32Array.of(1), [-1]], RangeError],
    ['a broken dim', ['float32', Float32Array.of(1), [1.5]], TypeError],
    ['a dim that is no number', ['float32', Float32Array.of(1), ['1']], TypeError],
    ['dims for other data', ['float32', Float32Array.of(1, 2), [3]], Error],
    ['the array of another type', ['float32', Int32Array.of(1)], TypeError],
    ['a type that does not exist', ['float31', Float32Array.of(1)], TypeError],
    ['numbers without a type', [[1, 2]], TypeError],
    ['nothing', [], TypeError],
    ['an object', [{}], TypeError],
    ['an ArrayBuffer', ['float32', new ArrayBuffer(4)], TypeError],
  ])('refuses %s', async (_, args, type) => {
    expect(await failureOf(() => new Tensor(...args))).toBeInstanceOf(type);
  });
});

describe('through a model', () => {
  it.each(numeric)('%s comes back as it went in', async (type, data) => {
    const session = await InferenceSession.create(identity(type, [5]));
    const { output } = await session.run({ input: new Tensor(type, data, [5]) });
    expect(output).toBeInstanceOf(Tensor);
    expect(output).toMatchObject({ type, size: 5, dims: [5] });
    expect(Object.getPrototypeOf(output.data)).toBe(Object.getPrototypeOf(data));
    expect([...output.data]).toEqual([...data]);
    await session.release();
  });

  it('strings come back as they went in', async () => {
    const session = await InferenceSession.create(identity('string', [4]));
    const data = ['', 'grüße', '模型', '🙂'];
    expect((await session.run({ input: new Tensor('string', data, [4]) })).output.data).toEqual(data);
    await session.release();
  });

  it.runIf(ours)('strings keep their zero characters', async () => {
    const session = await InferenceSession.create(identity('string', [1]));
    expect((await session.run({ input: new Tensor('string', ['a\0b'], [1]) })).output.data).toEqual(['a\0b']);
    await session.release();
  });

  it('half precision comes back as bits or as a Float16Array', async () => {
    const session = await InferenceSession.create(identity('float16', [3]));
    const bits = Uint16Array.of(0x3c00, 0xc000, 0x7bff);
    const run = (input: unknown) => session.run({ input });
    const Float16 = (globalThis as any).Float16Array;
    if (ours || !Float16) {
      const { output } = await run(new Tensor('float16', bits, [3]));
      expect(output.type).toBe('float16');
      expect([...new Uint16Array(output.data.buffer, output.data.byteOffset, 3)]).toEqual([...bits]);
      expect([...new Uint16Array((await run(output)).output.data.buffer.slice(0), 0, 3)]).toEqual([...bits]);
    }
    if (ours && Float16) {
      const { output } = await run(new Tensor('float16', Float16.of(1, -2, 65504), [3]));
      expect([...output.data]).toEqual([1, -2, 65504]);
    }
    await session.release();
  });

  it.runIf(ours).each<[ElementTypeName, any, number]>([
    ['bfloat16', Uint16Array.of(0x3f80, 0xc000, 0x7f80), 3],
    ['float8e4m3fn', Uint8Array.of(0x38, 0xb8, 0x7e), 3],
    ['float8e4m3fnuz', Uint8Array.of(0x40, 0x80, 1), 3],
    ['float8e5m2', Uint8Array.of(0x3c, 0x7c, 0x7b), 3],
    ['float8e5m2fnuz', Uint8Array.of(0x40, 0x80, 1), 3],
    ['uint4', Uint8Array.of(0x21, 0x03), 3],
    ['int4', Uint8Array.of(0xf1, 0x07), 3],
  ])('%s, which the peer cannot take, comes back as raw bits', async (type, data, size) => {
    const session = await InferenceSession.create(identity(type, [size]));
    const { output } = await session.run({ input: { type, data, dims: [size], location: 'cpu' } });
    expect(output).toMatchObject({ type, dims: [size], size });
    expect([...output.data]).toEqual([...data]);
    const again = await session.run({ input: output });
    expect([...again.output.data]).toEqual([...data]);
    await session.release();
  });

  it.runIf(ours)('int64 takes numbers', async () => {
    const session = await InferenceSession.create(identity('int64', [2]));
    const { output } = await session.run({ input: new Tensor('int64', [3, 4], [2]) });
    expect([...output.data]).toEqual([3n, 4n]);
    await session.release();
  });

  it.runIf(ours)('shared memory is taken', async () => {
    const session = await InferenceSession.create(identity('float32', [2]));
    const data = new Float32Array(new SharedArrayBuffer(8));
    data.set([1, 2]);
    expect([...(await session.run({ input: new Tensor('float32', data, [2]) })).output.data]).toEqual([1, 2]);
    await session.release();
  });

  it('disposed tensors are refused', async () => {
    const session = await InferenceSession.create(identity('float32', [1]));
    const gone = new Tensor('float32', Float32Array.of(1), [1]);
    gone.dispose();
    await expectFailure(() => session.run({ input: gone }), {
      type: RangeError,
      message: 'Tensor.location is not supported.',
      code: 'DISPOSED',
      fields: { input: 'input' },
    });
    await session.release();
  });
});
