import { Tensor, type TypedTensor } from 'infernode';

// Type and data.
const f32: TypedTensor<'float32'> = new Tensor('float32', new Float32Array(4), [2, 2]);
const fromNumbers: TypedTensor<'float32'> = new Tensor('float32', [1, 2, 3, 4], [2, 2]);
new Tensor('float32', [1, 2, 3, 4]);
const badText: TypedTensor<'float32'> = new Tensor('float32', ['a']); // error TS2322
const badArray: TypedTensor<'float32'> = new Tensor('float32', new Float64Array(4)); // error TS2322
new Tensor('float32', new Float32Array(4), 4); // error TS2769
new Tensor('float33', new Float32Array(4)); // error TS2769

const int4: TypedTensor<'int4'> = new Tensor('int4', new Uint8Array(1), [2]);
const bool: TypedTensor<'bool'> = new Tensor('bool', [true, false]);
new Tensor('bool', new Uint8Array(2));
const badBool: TypedTensor<'bool'> = new Tensor('bool', [1, 0]); // error TS2322

const text: TypedTensor<'string'> = new Tensor('string', ['a', 'b']);
const badString: TypedTensor<'string'> = new Tensor('string', [1]); // error TS2322

const int64: TypedTensor<'int64'> = new Tensor('int64', [1n, 2n]);
new Tensor('int64', [1, 2]);
new Tensor('uint64', Int32Array.of(1));
new Tensor('uint8', new Uint8ClampedArray(4));
new Tensor('float16', new Uint16Array(4));

// Inferred types.
const inferred: TypedTensor<'float32'> = new Tensor(new Float32Array(4), [4]);
const inferredBool: TypedTensor<'bool'> = new Tensor([true]);
const inferredText: TypedTensor<'string'> = new Tensor(['a']);
const wrong: TypedTensor<'int32'> = new Tensor(new Float32Array(4)); // error TS2322
new Tensor([1, 2]); // error TS2769
new Tensor({}); // error TS2769

// Types that onnxruntime-common lacks.
const bf16: TypedTensor<'bfloat16'> = new Tensor('bfloat16', new Uint16Array(4));
const packed: TypedTensor<'uint2'> = new Tensor('uint2', new Uint8Array(1), [4]);
const complex: TypedTensor<'complex64'> = new Tensor('complex64', new Float32Array(4), [2]);
new Tensor('float8e5m2', new Uint8Array(4));

// Not without new.
Tensor('float32', [1]); // error TS2348

// Members.
const data: Float32Array = f32.data;
const bits: Uint16Array = bf16.data;
const reshaped: TypedTensor<'float32'> = f32.reshape([4]);
const promised: Promise<BigInt64Array> = int64.getData();
const dims: readonly number[] = f32.dims;
f32.dims = [4]; // error TS2540
const type: Tensor.Type = f32.type;
const location: Tensor.DataLocation = f32.location;
const any: Tensor = bf16;
const map: Tensor.DataTypeMap['int8'] = new Int8Array(1);

export { badArray, badBool, badString, badText };
export { any, bits, bool, complex, data, dims, fromNumbers, inferred, inferredBool, inferredText, location, map };
export { packed, promised, reshaped, text, type, wrong };
