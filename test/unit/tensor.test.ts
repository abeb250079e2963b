import vm from 'node:vm';
import { Tensor as CommonTensor } from 'onnxruntime-common';
import { describe, expect, it } from 'vitest';
import { InferenceError } from '../../src/errors.js';
import { elementTypeOfName } from '../../src/tensor/element-types.js';
import { Tensor } from '../../src/tensor/tensor.js';
import { bytesOf, lengthProblem, toStorage } from '../../src/tensor/tensor-data.js';

function catching(action: () => unknown): any {
  try {
    action();
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
}
const construct = (...args: unknown[]): any => Reflect.construct(Tensor, args);

describe('the Tensor class', () => {
  it('is the class of onnxruntime-common to instanceof, in both directions', () => {
    expect(construct('float32', [1])).toBeInstanceOf(CommonTensor);
    expect(new CommonTensor('float32', [1])).toBeInstanceOf(Tensor);
    expect(construct('bfloat16', Uint16Array.of(1))).toBeInstanceOf(CommonTensor);
    expect({ type: 'float32' }).not.toBeInstanceOf(Tensor);
  });

  it('has its statics, its name and can be extended', () => {
    expect(Tensor.name).toBe('Tensor');
    expect(Tensor.fromPinnedBuffer('float32', Float32Array.of(1)).location).toBe('cpu-pinned');
    class Mine extends (Tensor as any) {}
    expect(Reflect.construct(Mine, ['float32', [1]])).toBeInstanceOf(Mine);
    expect(() => (Tensor as any)('float32', [1])).toThrow(TypeError);
  });

  it.each([
    ['bfloat16', Uint16Array.of(1, 2), [2]],
    ['float8e4m3fn', Uint8Array.of(1, 2), [2]],
    ['float8e8m0', Uint8Array.of(1, 2), [2]],
    ['float4e2m1', Uint8Array.of(0x21, 0x03), [3]],
    ['uint2', Uint8Array.of(0b11100100, 1), [5]],
    ['int2', Uint8Array.of(0b11100100, 1), [5]],
    ['float6e2m3', Uint8Array.of(0x41, 0x20, 0x0c, 0x3f), [5]],
    ['float6e3m2', Uint8Array.of(0x41, 0x20), [2]],
    ['complex64', Float32Array.of(1, 2, 3, 4), [2]],
    ['complex128', Float64Array.of(1, 2), [1]],
  ])('holds %s, which onnxruntime-common refuses', async (type, data, dims) => {
    expect(() => new (CommonTensor as any)(type, data, dims)).toThrow(TypeError);
    const tensor = construct(type, data, dims);
    expect(tensor).toMatchObject({ type, dims, size: dims[0], location: 'cpu' });
    expect(tensor.data).toBe(data);
    expect(await tensor.getData()).toBe(data);
    const reshaped = tensor.reshape([...dims, 1]);
    expect(reshaped).toMatchObject({ type, dims: [...dims, 1] });
    expect(reshaped.data).toBe(data);
    expect(() => construct(type, data, [100])).toThrow(/does not match data length/);
    expect(() => construct(type, ['a'], dims)).toThrow(TypeError);
    tensor.dispose();
    expect(() => tensor.data).toThrow('The tensor is disposed.');
  });

  it('throws InferenceError where dims do not fit the data, for all types', () => {
    for (const type of ['float32', 'bfloat16']) {
      const data = type === 'float32' ? Float32Array.of(1, 2, 3) : Uint16Array.of(1, 2, 3);
      const failure = catching(() => construct(type, data, [2, 2]));
      expect(failure).toBeInstanceOf(InferenceError);
      expect(failure).toMatchObject({ name: 'Error', code: 'INVALID_ARGUMENT', message: "Tensor's size(4) does not match data length(3)." }); // prettier-ignore
    }
    const { message } = catching(() => construct('float32', new Float64Array(1), [1]));
    expect(message).toBe("A float32 tensor's data must be type of Float32Array. Got Float64Array: Float32Array.from(data) converts it."); // prettier-ignore
  });

  it('infers one dim for the types of its own', () => {
    expect(construct('complex64', new Float32Array(6)).dims).toEqual([3]);
    expect(construct('bfloat16', new Uint16Array(6)).dims).toEqual([6]);
  });

  it('takes typed arrays of another realm, sharing their bytes', () => {
    const foreign = vm.runInNewContext('Float32Array.of(1, 2)');
    expect(foreign).not.toBeInstanceOf(Float32Array);
    for (const tensor of [construct('float32', foreign), construct(foreign, [2])]) {
      expect(tensor.data).toBeInstanceOf(Float32Array);
      foreign[0] = 7;
      expect([...tensor.data]).toEqual([7, 2]);
    }
    const pinned = construct({ location: 'cpu-pinned', type: 'float32', data: foreign, dims: [2] });
    expect(pinned).toMatchObject({ location: 'cpu-pinned', dims: [2] });
  });

  it('takes 64-bit integers from integer arrays', () => {
    expect(construct('int64', Int32Array.of(1, -2)).data).toEqual(BigInt64Array.of(1n, -2n));
    expect(construct('uint64', Uint8Array.of(1, 2)).data).toEqual(BigUint64Array.of(1n, 2n));
    expect(() => construct('int64', Float64Array.of(1))).toThrow(TypeError);
    expect(() => construct('int64', [1.5])).toThrow(RangeError);
  });

  it('keeps the bytes of int4 in an Int8Array', () => {
    const data = Int8Array.of(0x21, -1);
    const tensor = construct('int4', data, [4]);
    expect(tensor.data.buffer).toBe(data.buffer);
  });
});

describe('data for the addon', () => {
  const storage = (type: string, data: unknown): any => toStorage(elementTypeOfName(type)!, data, 'input');

  it('is the caller’s where the type fits', () => {
    for (const [type, data] of [
      ['float32', Float32Array.of(1)],
      ['bool', Uint8Array.of(1)],
      ['float16', Uint16Array.of(1)],
      ['uint8', Uint8ClampedArray.of(1)],
      ['int4', Int8Array.of(1)],
    ] as const) {
      expect(storage(type, data)).toBe(data);
    }
  });

  it('is a copy of shared memory', () => {
    const shared = new Float32Array(new SharedArrayBuffer(8));
    shared[1] = 5;
    const copy = storage('float32', shared);
    expect(copy).toEqual(Float32Array.of(0, 5));
    expect(copy.buffer).toBeInstanceOf(ArrayBuffer);
  });

  it('of another realm that was detached is none', () => {
    const foreign = vm.runInNewContext('Uint16Array.of(1, 2)');
    structuredClone(foreign.buffer, { transfer: [foreign.buffer] });
    expect(storage('float16', foreign)).toHaveLength(0);
    expect(bytesOf(foreign)).toHaveLength(0);
  });

  it('is refused where the type does not fit', () => {
    expect(() => storage('float32', Int32Array.of(1))).toThrow(/input: a float32 tensor.*Float32Array, got Int32Array/);
    expect(() => storage('float32', [1])).toThrow(TypeError);
    expect(() => storage('string', ['a', 5])).toThrow(/element 1 .* got number/);
    expect(() => storage('string', Uint8Array.of(1))).toThrow(TypeError);
    expect(() => storage('float32', new Proxy(Float32Array.of(1), {}))).toThrow(TypeError);
  });

  it('may be longer than needed but not shorter', () => {
    const problem = (type: string, data: any, size: number) => lengthProblem(elementTypeOfName(type)!, data, size);
    expect(problem('float32', new Float32Array(4), 3)).toBeUndefined();
    expect(problem('float32', new Float32Array(3), 4)).toBe('not enough space: expected 16, got 12');
    expect(problem('float32', new Float32Array(0), 4)).toMatch(/detached/);
    expect(problem('string', ['a'], 2)).toMatch(/2 strings, got 1/);
    expect(problem('int4', new Uint8Array(4), 4)).toMatch(/packed, 2 elements to a byte/);
    expect(problem('uint2', new Uint8Array(2), 5)).toBeUndefined();
    expect(problem('float6e2m3', new Uint8Array(6), 8)).toBeUndefined();
    expect(problem('float6e3m2', new Uint8Array(8), 8)).toMatch(/packed, 4 elements to 3 bytes/);
    expect(problem('complex64', new Float32Array(4), 2)).toBeUndefined();
  });
});
