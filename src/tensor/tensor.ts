import { Tensor as CommonTensor, type TypedTensor } from 'onnxruntime-common';

import { arrayLength, elementTypeOfName, type ElementType } from './element-types.js';
import { InferenceError, rangeError, typeError } from '../errors.js';
import { dataHint, typeNameHint } from '../hints.js';
import {
  describe,
  inThisRealm,
  show,
  storageLength,
  toBigInts,
  toStorage,
  typedArrayName,
  viewAs,
} from './tensor-data.js';
import { withOwnData } from './own-data.js';
import type { TensorConstructor, TensorFields } from './tensor-types.js';

/**
 * A tensor of a type that onnxruntime-common cannot construct (bfloat16, float8, complex, 2-bit integers): one of its
 * class all the same, with the fields of the real type.
 */
const TensorBase = CommonTensor as unknown as new (type: 'uint8', data: Uint8Array) => CommonTensor;
export class ExtendedTensor extends TensorBase {
  /** Throws TypeError for data or dims of another kind, INVALID_ARGUMENT where data and dims do not fit. */
  constructor(type: ElementType, data: unknown, dims: unknown) {
    super('uint8', new Uint8Array(0));
    const storage = toStorage(type, data, 'Tensor');
    const perElement = arrayLength(type, 2) / 2;
    const shape = dims === undefined ? [Math.floor(storageLength(storage) / perElement)] : dims;
    const size = sizeOf(shape);
    if (arrayLength(type, size) !== storageLength(storage)) {
      const message = `Tensor's size(${size}) does not match data length(${storageLength(storage)}).`;
      throw new InferenceError('INVALID_ARGUMENT', message);
    }
    setFields(this, {
      type: type.name,
      dims: shape as readonly number[],
      size,
      cpuData: storage,
      dataLocation: 'cpu',
    });
  }

  /** The same data with other dims. Throws INVALID_ARGUMENT where they have another number of elements. */
  override reshape(dims: readonly number[]): TypedTensor<CommonTensor.Type> {
    return reshaped(this, dims);
  }
}

function reshaped(tensor: ExtendedTensor, dims: readonly number[]): TypedTensor<CommonTensor.Type> {
  return new ExtendedTensor(elementTypeOfName(tensor.type) as ElementType, tensor.data, dims);
}

/** Overwrites fields that onnxruntime-common declares read-only or private. */
export function setFields(tensor: CommonTensor, fields: Partial<TensorFields>): void {
  Object.assign(tensor, fields);
}

/**
 * onnxruntime-common's Tensor, whose constructor also takes typed arrays of other realms, 64-bit integers from integer
 * arrays, and all types of ONNX. It shares that class's prototype: `instanceof` agrees with it in both directions.
 */
export const Tensor: TensorConstructor = makeConstructor();
/** A tensor, as onnxruntime-common declares it. */
// eslint-disable-next-line @typescript-eslint/no-empty-object-type -- merges with the namespace
export interface Tensor extends CommonTensor {}
export declare namespace Tensor {
  export type DataTypeMap = CommonTensor.DataTypeMap;
  export type ElementTypeMap = CommonTensor.ElementTypeMap;
  export type DataType = CommonTensor.DataType;
  export type ElementType = CommonTensor.ElementType;
  export type CpuPinnedDataTypes = CommonTensor.CpuPinnedDataTypes;
  export type TextureType = CommonTensor.TextureType;
  export type TextureDataTypes = CommonTensor.TextureDataTypes;
  export type GpuBufferType = CommonTensor.GpuBufferType;
  export type GpuBufferDataTypes = CommonTensor.GpuBufferDataTypes;
  export type MLTensorType = CommonTensor.MLTensorType;
  export type MLTensorDataTypes = CommonTensor.MLTensorDataTypes;
  export type DataLocation = CommonTensor.DataLocation;
  export type Type = CommonTensor.Type;
}

const Base = CommonTensor as unknown as new (arg0: unknown, arg1: unknown, arg2: unknown) => CommonTensor;

function makeConstructor(): TensorConstructor {
  const constructor = function (this: unknown, arg0: unknown, arg1: unknown, arg2: unknown): object {
    if (new.target === undefined) throw new TypeError("Class constructor Tensor cannot be invoked without 'new'");
    const type = elementTypeOfName(arg0);
    let args: unknown[];
    if (type === undefined) args = [adaptUntyped(arg0), arg1, arg2];
    else if (type.common) args = [arg0, adaptData(type, arg1), arg2];
    else return new ExtendedTensor(type, arg1, arg2);
    try {
      const tensor =
        new.target === constructor
          ? new Base(args[0], args[1], args[2])
          : (Reflect.construct(CommonTensor, args, new.target) as CommonTensor);
      return withOwnData(tensor);
    } catch (error) {
      throw explained(error, arg0, arg1);
    }
  };
  Object.defineProperty(constructor, 'name', { value: 'Tensor' });
  constructor.prototype = CommonTensor.prototype;
  Object.setPrototypeOf(constructor, CommonTensor); // statics
  return constructor as unknown as TensorConstructor;
}

/** What onnxruntime-common throws has no code, and does not say what to do. */
function explained(error: unknown, arg0: unknown, arg1: unknown): unknown {
  if (arg0 === undefined || arg0 === null) {
    return typeError("A tensor is made of a type, data and dims: new Tensor('float32', data, dims).");
  }
  if (!(error instanceof Error) || 'code' in error) return error;
  const message = withoutSources(error.message) + argumentHint(error.message, arg0, arg1);
  if (!(error instanceof TypeError || error instanceof RangeError)) {
    return new InferenceError('INVALID_ARGUMENT', message, undefined, { cause: error });
  }
  return Object.isExtensible(error) ? Object.assign(error, { code: 'INVALID_ARGUMENT', message }) : error;
}

/** onnxruntime-common puts the text of a constructor where its name is meant. */
const withoutSources = (message: string): string => message.replace(/function (\w+)\(\) \{ \[native code\] \}/g, '$1.');

function argumentHint(message: string, arg0: unknown, arg1: unknown): string {
  if (message.startsWith('Unsupported tensor type')) return typeNameHint(String(arg0));
  if (message.includes('data must be type of')) {
    return dataHint(elementTypeOfName(arg0), arg1);
  }
  const data = Array.isArray(arg0) ? (arg0 as unknown[]) : arg1;
  if (Array.isArray(data) && Array.isArray(data[0])) {
    return " The data is nested: give it flat, new Tensor('float32', data.flat(Infinity), dims).";
  }
  if (message === 'Invalid element type of data array: number.') {
    return " Name the type first: new Tensor('float32', data, dims).";
  }
  return '';
}

function adaptData(type: ElementType, data: unknown): unknown {
  const tag = typedArrayName(data);
  if (tag === undefined) return data;
  if (type.name === 'int4' && tag === 'Int8Array') return viewAs('Uint8Array', data as Int8Array);
  return toBigInts(type, tag, data) ?? inThisRealm(data);
}

function adaptUntyped(arg: unknown): unknown {
  if (typeof arg !== 'object' || arg === null || !('location' in arg && 'data' in arg)) return inThisRealm(arg);
  return { ...arg, data: inThisRealm(arg.data) };
}

/** Product of dims; throws as onnxruntime-common does where they are not an array of non-negative integers. */
export function sizeOf(dims: unknown): number {
  if (!Array.isArray(dims)) throw typeError(`A tensor's dims must be a number array, got ${describe(dims)}`);
  let size = 1;
  for (let i = 0; i < dims.length; i++) {
    const dim: unknown = dims[i];
    if (typeof dim !== 'number' || !Number.isSafeInteger(dim)) {
      throw typeError(`dims[${i}] must be an integer, got: ${show(dim)}`);
    }
    if (dim < 0) throw rangeError(`dims[${i}] must be a non-negative integer, got: ${dim}`);
    size *= dim;
  }
  return size;
}
