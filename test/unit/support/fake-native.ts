import { elementTypeOfCode } from '../../../src/tensor/element-types.js';
import type { NativeError } from '../../../src/errors.js';
import {
  Kind,
  Placement,
  type Completion,
  type NativeAddon,
  type NativeDevice,
  type NativeRunOptions,
  type NativeSession,
  type NativeSessionOptions,
  type NativeTensor,
  type NativeValueInfo,
  type Wire,
} from '../../../src/native.js';

/** One value as it crossed to the addon. */
export type Decoded =
  | { kind: 'none' | 'in place' }
  | { kind: 'tensor'; type: string; dims: number[]; data: unknown }
  | { kind: 'handle'; handle: NativeTensor }
  | { kind: 'sequence'; items: Decoded[] }
  | { kind: 'map'; keys: Decoded; values: Decoded | Decoded[] };

export interface DecodedRun {
  feeds: Map<number, Decoded>;
  outputs: { index: number; placement: number; device?: string; target?: Decoded }[];
}

/** Reads the wire form as src/native.ts specifies it. */
export function decodeRun(numbers: Float64Array, items: readonly unknown[]): DecodedRun {
  let n = 0;
  let i = 0;
  const number = (): number => numbers[n++] as number;
  const value = (): Decoded => {
    const kind = number();
    switch (kind) {
      case Kind.None:
        return { kind: 'none' };
      case Kind.Tensor: {
        const type = elementTypeOfCode(number())!.name;
        const dims = Array.from({ length: number() }, number);
        return { kind: 'tensor', type, dims, data: items[i++] };
      }
      case Kind.Sequence:
        return { kind: 'sequence', items: Array.from({ length: number() }, value) };
      case Kind.Map: {
        const keys = value();
        const count = number();
        return { kind: 'map', keys, values: count === -1 ? value() : Array.from({ length: count }, value) };
      }
      case Kind.Handle:
        return { kind: 'handle', handle: items[i++] as NativeTensor };
      default:
        throw new Error(`unknown kind ${kind}`);
    }
  };
  const feeds = new Map(Array.from({ length: number() }, () => [number(), value()] as const));
  const outputs = Array.from({ length: number() }, () => {
    const index = number();
    const placement = number();
    if (placement === Placement.Device) return { index, placement, device: items[i++] as string };
    return placement === Placement.Target ? { index, placement, target: value() } : { index, placement };
  });
  return { feeds, outputs };
}

export const tensorInfo = (name: string, elementType = 1, shape: NativeValueInfo['shape'] = null): NativeValueInfo => ({
  name,
  kind: 'tensor',
  optional: false,
  elementType,
  shape,
  overridable: false,
});

/** A tensor result in wire form. */
export function resultOf(...tensors: { type: number; dims: number[]; item: unknown }[]): Wire {
  const numbers = tensors.flatMap(({ type, dims }) => [Kind.Tensor, type, dims.length, ...dims]);
  return { numbers: Float64Array.from(numbers), items: tensors.map(({ item }) => item) };
}

/** A session of the double: `answer` makes results of decoded runs; a pending run ends through `settle`. */
export class FakeSession implements NativeSession {
  inputs: NativeValueInfo[] = [tensorInfo('x')];
  outputs: NativeValueInfo[] = [tensorInfo('y')];
  devices = ['cpu'];
  placement = [];
  metadata = {
    producerName: 'double',
    producerVersion: '',
    domain: '',
    graphName: '',
    description: '',
    modelVersion: 0,
    irVersion: 8,
    opsets: {},
    custom: {},
  };
  runs: DecodedRun[] = [];
  runOptions: (NativeRunOptions | undefined)[] = [];
  pending: Completion<Wire>[] = [];
  asynchronous = false;
  answer: (run: DecodedRun) => Wire = () => resultOf({ type: 1, dims: [1], item: Float32Array.of(1).buffer });

  run(numbers: Float64Array, items: readonly unknown[], options: NativeRunOptions | undefined, done: Completion<Wire>) {
    this.runOptions.push(options);
    const run = decodeRun(numbers, items);
    this.runs.push(run);
    if (!this.asynchronous) return this.answer(run);
    return this.pending.push(done);
  }
  runSync(numbers: Float64Array, items: readonly unknown[], options: NativeRunOptions | undefined): Wire {
    this.runOptions.push(options);
    this.runs.push(decodeRun(numbers, items));
    return this.answer(this.runs.at(-1)!);
  }
  allocate(elementType: number, dims: readonly number[], device: string): NativeTensor {
    return new FakeTensor(elementType, [...dims], device);
  }
  checkDevice(): void {
    // it has every one
  }
  startProfiling(): void {
    this.profile = { path: 'trace.json', trace: '[]' };
  }
  profile: { path: string; trace: string } | undefined;
  endProfiling() {
    const { profile } = this;
    this.profile = undefined;
    return profile;
  }
  memoryBytes(): number {
    return 0;
  }
  joinedRows() {
    return this.outputs.map(() => 'rows' as const);
  }

  graph() {
    return { nodes: [], values: [], constantBytes: [], weightBytes: 0, keptBytes: 0, arenaBytes: 0 };
  }
  share(): string {
    return 'double';
  }
  release(done: Completion<undefined>): void {
    setImmediate(done, undefined, undefined);
  }
}

export class FakeTensor implements NativeTensor {
  bytes: ArrayBuffer;
  disposed = false;
  constructor(
    readonly elementType: number,
    readonly dims: number[],
    readonly device: string,
  ) {
    const size = dims.reduce((a, b) => a * b, 1);
    this.bytes = new ArrayBuffer(Math.ceil((size * elementTypeOfCode(elementType)!.bits) / 8));
  }
  read(): ArrayBuffer {
    return this.bytes.slice(0);
  }
  write(data: ArrayBufferView): void {
    new Uint8Array(this.bytes).set(new Uint8Array(data.buffer, data.byteOffset, this.bytes.byteLength));
  }
  dispose(): void {
    this.disposed = true;
  }
}

/** The double of the addon. `next` is what creating a session gives, or an error that it reports. */
export class FakeAddon implements NativeAddon {
  version = '0.1.0';
  session = new FakeSession();
  failure: NativeError | undefined;
  created: { source: unknown; options: NativeSessionOptions }[] = [];
  cancelled: number[] = [];
  expired: number[] = [];
  concurrentRuns: number | undefined;

  reset(): FakeSession {
    this.session = new FakeSession();
    this.failure = undefined;
    this.created = [];
    this.cancelled = [];
    return this.session;
  }
  listSupportedBackends() {
    return [
      { name: 'cpu', bundled: true },
      { name: 'null', bundled: true },
      { name: 'cuda', bundled: false },
      { name: 'wasm', bundled: false },
    ];
  }
  listDevices(done: Completion<NativeDevice[]>): number {
    const device = { device: 'cuda:0', name: 'A GPU', memoryBytes: 1e9, computeCapability: '9.0', driver: '13.0' };
    setImmediate(done, this.failure, this.failure ? undefined : [device]);
    return 8;
  }
  createSession(source: string | Uint8Array, options: NativeSessionOptions, done: Completion<NativeSession>): number {
    this.created.push({ source: typeof source === 'string' ? source : new Uint8Array(source), options }); // the addon copies them
    if (this.failure) setImmediate(done, this.failure, undefined);
    else setImmediate(done, undefined, this.session);
    return 7;
  }
  createSessionSync(source: string | Uint8Array, options: NativeSessionOptions): NativeSession {
    this.created.push({ source, options });
    if (this.failure) throw this.failure;
    return this.session;
  }
  detach(buffer: ArrayBuffer): void {
    structuredClone(buffer, { transfer: [buffer] });
  }
  openSharedSession(): NativeSession {
    if (this.failure) throw this.failure;
    return this.session;
  }
  hear: Parameters<NativeAddon['setLog']>[0] | undefined;
  setLog(hear: Parameters<NativeAddon['setLog']>[0]): void {
    this.hear = hear;
  }
  flushLog(): void {}
  transform(): number {
    throw new Error('not faked');
  }

  prepareImage(_pixels: Uint8Array, how: Float64Array, done: Completion<ArrayBuffer>): number {
    const [width, height, channels] = how.slice(7, 10) as unknown as [number, number, number];
    setImmediate(done, this.failure, this.failure ? undefined : new ArrayBuffer(4 * width * height * channels));
    return 9;
  }
  cancel(job: number): void {
    this.cancelled.push(job);
  }
  expire(job: number): void {
    this.expired.push(job);
  }
  setConcurrentRuns(most: number): void {
    this.concurrentRuns = most;
  }
}
