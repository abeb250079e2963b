import type { FromImageOptions, ImageSource } from '../image/image-types.js';
import type { LogMessage } from '../options/log-message.js';
import type { Tensor, TensorConstructor as CommonTensorConstructor, TypedTensor } from 'onnxruntime-common';

// Settings of the process, and the element types that ONNX has and onnxruntime-common lacks. Packed types (6, 4 and 2
// bits) show ONNX's raw bytes, low bits first; complex numbers alternate real and imaginary parts.
declare module 'onnxruntime-common' {
  interface Env {
    /**
     * How many asynchronous runs and loads of the process execute at a time; others wait, and sessions take turns. Read by
     * each `create`. Default: two for each processor.
     */
    maxConcurrentRuns?: number;
    /** Hears the messages of sessions made later that have no `onLog` of their own, in the place of stderr. */
    onLog?: ((message: LogMessage) => void) | undefined;
    /**
     * Whether tensors made later have `data` as an enumerable property of their own, as those of onnxruntime 1.14 had.
     * Default: false.
     */
    ownTensorData?: boolean;
  }
  interface OptionsNormalizationParameters {
    /** In the place of `norm`: pixels are normalised as (pixel / 255 - mean) / std, or were, in `toImageData`. */
    normalize?: { readonly mean: number | readonly number[]; readonly std: number | readonly number[] };
  }
  namespace Tensor {
    interface DataTypeMap {
      bfloat16: Uint16Array;
      float8e4m3fn: Uint8Array;
      float8e4m3fnuz: Uint8Array;
      float8e5m2: Uint8Array;
      float8e5m2fnuz: Uint8Array;
      float8e8m0: Uint8Array;
      float4e2m1: Uint8Array;
      float6e2m3: Uint8Array;
      float6e3m2: Uint8Array;
      uint2: Uint8Array;
      int2: Uint8Array;
      complex64: Float32Array;
      complex128: Float64Array;
    }
    interface ElementTypeMap {
      bfloat16: number;
      float8e4m3fn: number;
      float8e4m3fnuz: number;
      float8e5m2: number;
      float8e5m2fnuz: number;
      float8e8m0: number;
      float4e2m1: number;
      float6e2m3: number;
      float6e3m2: number;
      uint2: number;
      int2: number;
      complex64: number;
      complex128: number;
    }
  }
}

/** A Float16Array, where JavaScript has one (Node 24 and later). */
export interface Float16ArrayLike extends ArrayBufferView {
  /** Always 2: bytes of an element. */
  readonly BYTES_PER_ELEMENT: number;
  /** Number of elements. */
  readonly length: number;
  /** By this the class is told from other arrays of 16 bits. */
  readonly [Symbol.toStringTag]: 'Float16Array';
}

/** A picture, or several that become a batch. */
type Images = ImageSource | readonly ImageSource[];

/** `Tensor.fromImage` as this package has it. */
export interface FromImage {
  (source: Images, options: FromImageOptions & { dataType: 'uint8' }): Promise<TypedTensor<'uint8'>>;
  (source: Images, options?: FromImageOptions & { dataType?: 'float32' }): Promise<TypedTensor<'float32'>>;
}

/** The Tensor class of onnxruntime-common, constructed from more: every ONNX type, other realms' arrays. */
export interface TensorConstructor extends CommonTensorConstructor {
  /**
   * A tensor of a picture, or of several: of pixels, or of files by `sharp` where that is installed; cropped, resized and normalised
   * by the engine. Rejects with TypeError and RangeError for wrong options, INVALID_ARGUMENT and IO.
   */
  readonly fromImage: FromImage & CommonTensorConstructor['fromImage'];
  /** Dims that are known when the program is compiled (`[1, 3] as const`) are part of the tensor's type. */
  new <T extends Tensor.Type, D extends readonly number[]>(
    type: T,
    data: Tensor.DataTypeMap[T] | readonly Tensor.ElementTypeMap[T][],
    dims: number extends D['length'] ? never : D,
  ): TypedTensor<T> & { readonly dims: D };
  new (type: 'float16', data: Float16ArrayLike, dims?: readonly number[]): TypedTensor<'float16'>;
  /** Two to a byte, the first in the low bits. */
  new (type: 'int4', data: Uint8Array, dims?: readonly number[]): TypedTensor<'int4'>;
  new <T extends 'int64' | 'uint64'>(
    type: T,
    data: Int8Array | Uint8Array | Int16Array | Uint16Array | Int32Array | Uint32Array,
    dims?: readonly number[],
  ): TypedTensor<T>;
}

/**
 * What a model takes or gives: a tensor, a sequence (array), a map (Map with string, bigint or number keys) or an
 * empty optional (null).
 */
export type InferenceValue =
  | Tensor
  | readonly InferenceValue[]
  | ReadonlyMap<string | bigint | number, InferenceValue | number | bigint | string>
  | null;

/** The fields that instances of onnxruntime-common's class have at run time. */
export interface TensorFields {
  type: Tensor.Type;
  dims: readonly number[];
  size: number;
  cpuData: unknown;
  gpuBufferData: unknown;
  dataLocation: Tensor.DataLocation;
}
