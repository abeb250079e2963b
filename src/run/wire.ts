import { Tensor as CommonTensor } from 'onnxruntime-common';

import { elementTypeOfCode, type ElementType } from '../tensor/element-types.js';
import { EngineTensor } from '../tensor/engine-tensor.js';
import { InferenceError } from '../errors.js';
import { Kind, type NativeTensor, type Wire } from '../native.js';
import { withOwnData } from '../tensor/own-data.js';
import { ExtendedTensor } from '../tensor/tensor.js';
import { wrapBuffer, type TensorStorage } from '../tensor/tensor-data.js';
import type { InferenceValue } from '../tensor/tensor-types.js';

/** Builds the wire form of a run (see native.ts). Reused, because the addon is done with it when the call returns. */
export class WireWriter {
  private static readonly idle: WireWriter[] = [];

  numbers = new Float64Array(64);
  items: unknown[] = [];
  private length = 0;

  /** An empty writer; a run begun by a getter of another run's feeds gets one of its own. */
  static take(): WireWriter {
    return WireWriter.idle.pop() ?? new WireWriter();
  }

  giveBack(): void {
    this.length = 0;
    this.items = [];
    if (WireWriter.idle.length < 4) WireWriter.idle.push(this);
  }

  number(value: number): void {
    if (this.length === this.numbers.length) {
      const larger = new Float64Array(2 * this.length);
      larger.set(this.numbers);
      this.numbers = larger;
    }
    this.numbers[this.length++] = value;
  }

  item(value: unknown): void {
    this.items.push(value);
  }

  tensor(elementType: number, dims: readonly number[], storage: TensorStorage): void {
    this.number(Kind.Tensor);
    this.number(elementType);
    this.number(dims.length);
    for (const dim of dims) this.number(dim);
    this.item(storage);
  }
}

/** Makes JavaScript values of a result, one after another. */
export class WireReader {
  private nextNumber = 0;
  private nextItem = 0;

  constructor(private readonly wire: Wire) {}

  /** What the addon wrote into the caller's tensor is null here. */
  value(): InferenceValue {
    const kind = this.number();
    switch (kind) {
      case Kind.None:
      case Kind.InPlace:
        return null;
      case Kind.Tensor:
        return this.tensor();
      case Kind.Sequence:
        return Array.from({ length: this.number() }, () => this.value());
      case Kind.Map:
        return this.map();
      case Kind.Handle:
        return new EngineTensor(this.item() as NativeTensor);
      default:
        throw new InferenceError('INTERNAL', `The addon returned a value of unknown kind ${kind}.`);
    }
  }

  private number(): number {
    return this.wire.numbers[this.nextNumber++] as number;
  }

  private item(): unknown {
    return this.wire.items[this.nextItem++];
  }

  private tensor(): CommonTensor {
    const type = elementTypeOfCode(this.number()) as ElementType;
    const rank = this.number();
    const dims = new Array<number>(rank);
    for (let i = 0; i < rank; i++) dims[i] = this.number();
    const item = this.item();
    if (type.array === 'Array') return withOwnData(new CommonTensor('string', item as string[], dims));
    const data = wrapBuffer(type.array, item as ArrayBuffer);
    return withOwnData(
      type.common ? new CommonTensor(type.name, data as never, dims) : new ExtendedTensor(type, data, dims),
    );
  }

  private map(): ReadonlyMap<string | bigint, InferenceValue | number | bigint | string> {
    const keys = this.elements();
    const count = this.number();
    const values = count === -1 ? this.elements() : Array.from({ length: count }, () => this.value());
    return new Map(Array.from(keys as ArrayLike<string | bigint>, (key, i) => [key, values[i] as InferenceValue]));
  }

  /** The elements of a tensor of rank 1. */
  private elements(): ArrayLike<unknown> {
    return (this.value() as CommonTensor).data;
  }
}
