import { Tensor as CommonTensor, type TypedTensor } from 'onnxruntime-common';

import { elementTypeOfCode, type ElementType } from './element-types.js';
import { callNative, InferenceError } from '../errors.js';
import type { NativeTensor } from '../native.js';
import { setFields, sizeOf } from './tensor.js';
import { lengthProblem, toStorage, wrapBuffer } from './tensor-data.js';

const Base = CommonTensor as unknown as new (type: 'uint8', data: Uint8Array) => CommonTensor;

/**
 * A tensor in the engine's memory: from `session.allocate()` or an output bound to a device. Runs use it without a
 * copy. Its location is 'cpu-pinned' in host memory and 'gpu-buffer' on a device; JavaScript reaches the bytes by
 * copies, `getData()` and `setData()`.
 */
export class EngineTensor extends Base {
  readonly #handle: NativeTensor;
  readonly #type: ElementType;

  /** @internal */
  constructor(handle: NativeTensor) {
    super('uint8', new Uint8Array(0));
    this.#handle = handle;
    this.#type = elementTypeOfCode(handle.elementType) as ElementType;
    const { dims } = handle;
    setFields(this, {
      type: this.#type.name,
      dims,
      size: sizeOf(dims),
      cpuData: undefined,
      dataLocation: handle.device === 'cpu' ? 'cpu-pinned' : 'gpu-buffer',
    });
  }

  /** The addon's object of an engine tensor, undefined for other values. @internal */
  static handleOf(value: object): NativeTensor | undefined {
    return #handle in value ? value.#handle : undefined;
  }

  /** Where the memory is: 'cpu', 'null', 'cuda:0', ... */
  get device(): string {
    return this.#handle.device;
  }

  /**
   * A copy of the elements of a tensor in host memory. Throws INVALID_ARGUMENT for one on a device, where `getData()`
   * is the way, and DISPOSED.
   */
  override get data(): CommonTensor.DataType {
    if (this.location === 'gpu-buffer') {
      const message = 'The data is not on CPU. Use `getData()` to download GPU data to CPU.';
      throw new InferenceError('INVALID_ARGUMENT', message);
    }
    return this.#read();
  }

  /** A copy of the elements. `releaseData`: gives the engine's memory back afterwards. Rejects with DISPOSED. */
  override getData(releaseData?: boolean): Promise<CommonTensor.DataType> {
    return new Promise((resolve) => {
      const data = this.#read();
      if (releaseData) this.dispose();
      resolve(data);
    });
  }

  /**
   * Overwrites the elements. Throws TypeError for data of another type, and InferenceError: INVALID_ARGUMENT where
   * there is too little of it, DISPOSED.
   */
  setData(data: CommonTensor.DataType | readonly string[] | readonly number[] | readonly bigint[]): void {
    this.#ensureValid();
    const storage = toStorage(this.#type, data, 'setData');
    const problem = lengthProblem(this.#type, storage, this.size);
    if (problem !== undefined) throw new InferenceError('INVALID_ARGUMENT', `setData: ${problem}.`);
    callNative(() => {
      this.#handle.write(storage);
    });
  }

  /** Gives the memory back to the engine; runs that have begun keep it until they end. */
  override dispose(): void {
    if (this.location === 'none') return;
    this.#handle.dispose();
    setFields(this, { dataLocation: 'none' });
  }

  /** Throws INVALID_ARGUMENT: engine memory has one shape. */
  override reshape(_dims: readonly number[]): TypedTensor<CommonTensor.Type> {
    this.#ensureValid();
    throw new InferenceError('INVALID_ARGUMENT', 'Cannot reshape a tensor that owns engine memory.');
  }

  #read(): CommonTensor.DataType {
    this.#ensureValid();
    const bytes = callNative(() => this.#handle.read());
    if (Array.isArray(bytes)) return bytes;
    const data = wrapBuffer(this.#type.array as 'Uint8Array', bytes);
    // As onnxruntime-common shows the type: Float16Array where JavaScript has it.
    return this.#type.common ? new CommonTensor(this.#type.name, data as never, this.dims).data : (data as Uint8Array);
  }

  #ensureValid(): void {
    if (this.location === 'none') throw new InferenceError('DISPOSED', 'The tensor is disposed.');
  }
}
