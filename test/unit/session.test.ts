import { getEventListeners } from 'node:events';
import { env, registerBackend } from 'onnxruntime-common';
import { beforeEach, describe, expect, it } from 'vitest';
import { Kind, Placement } from '../../src/native.js';
import { FakeTensor, resultOf, tensorInfo, type Decoded, type FakeSession } from './support/fake-native.js';
import { addon, EngineTensor, failureOf, InferenceError, InferenceSession, IoBinding, listDevices, listSupportedBackends, Tensor } from './support/session.js'; // prettier-ignore

let native: FakeSession;
let session: any;
const floats = (...values: number[]): any => new Tensor('float32', Float32Array.from(values));

beforeEach(async () => {
  native = addon.reset();
  session = await InferenceSession.create('model.onnx');
});

describe('creation', () => {
  it('passes a path and bytes on', async () => {
    expect(addon.created[0]!.source).toBe('model.onnx');
    const bytes = Uint8Array.of(0, 1, 2, 3);
    await InferenceSession.create(bytes);
    await InferenceSession.create(bytes.buffer, 1, 2);
    InferenceSession.createSync(bytes.buffer, 2);
    expect(addon.created.slice(1).map(({ source }) => source)).toEqual([
      bytes,
      bytes.subarray(1, 3),
      bytes.subarray(2),
    ]);
  });

  it('leaves one key of its own on the session', () => {
    expect(Object.keys(session)).toEqual(['handler']);
    expect(session.constructor.name).toBe('InferenceSession');
  });

  it('reads blobs first', async () => {
    const externalData = [{ path: 'w', data: new Blob([Uint8Array.of(1, 2)]) }];
    await InferenceSession.create('m', { externalData });
    expect(addon.created.at(-1)!.options.externalData).toEqual([{ path: 'w', data: Uint8Array.of(1, 2) }]);
    expect(() => InferenceSession.createSync('m', { externalData })).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(/Blob/) }),
    );
  });

  it('makes errors whose stack names the caller', async () => {
    addon.failure = { code: 'INVALID_MODEL', message: 'Failed to load model', path: 'x' };
    const error = await failureOf(async function theCaller() {
      return await InferenceSession.create('x');
    });
    expect(error).toBeInstanceOf(InferenceError);
    expect(error).toMatchObject({ code: 'INVALID_MODEL', path: 'x' });
    expect(error.stack).toContain('theCaller');
    expect(() => InferenceSession.createSync('x')).toThrow(InferenceError);
  });

  it('ends at the signal', async () => {
    const controller = new AbortController();
    const creating = failureOf(() => InferenceSession.create('m', { signal: controller.signal }));
    await Promise.resolve();
    await new Promise(process.nextTick);
    addon.failure = undefined;
    controller.abort('enough');
    await creating.catch(() => undefined); // the double completes all the same
    expect(addon.cancelled).toEqual([7]);
    const before = await failureOf(() => InferenceSession.create('m', { signal: AbortSignal.abort('why') }));
    expect(before).toMatchObject({ name: 'AbortError', code: 'ABORTED', cause: 'why' });
  });

  it('lists devices', async () => {
    expect(await listDevices()).toMatchObject([{ device: 'cuda:0', computeCapability: '9.0' }]);
    addon.failure = { code: 'INTERNAL', message: 'a driver that fails' };
    expect((await failureOf(() => listDevices())).message).toContain('a driver that fails');
  });

  it('lists and registers what the binary has', async () => {
    expect(listSupportedBackends()).toEqual([{ name: 'cpu', bundled: true }]); // not the double of the tests
    await InferenceSession.create('m', { executionProviders: ['cuda', 'cpu'] });
    expect(addon.created.at(-1)!.options.providers.map(({ name }) => name)).toEqual(['cuda', 'cpu']);
    const error = await failureOf(() => InferenceSession.create('m', { executionProviders: ['wasm'] }));
    expect(error).toMatchObject({ code: 'PROVIDER_UNAVAILABLE' });
    expect(error.message).toContain('no available backend found. ERR: [wasm] backend not found.');
  });

  it('leaves sessions of other backends to them', async () => {
    registerBackend(
      'theirs',
      {
        init: async () => undefined,
        createInferenceSessionHandler: async () => ({
          inputNames: ['i'],
          outputNames: ['o'],
          inputMetadata: [],
          outputMetadata: [],
          startProfiling: () => undefined,
          endProfiling: () => undefined,
          dispose: async () => undefined,
          run: async (feeds) => ({ o: { type: 'float32', data: (feeds['i'] as any).data, dims: [2] } as any }),
        }),
      },
      1,
    );
    const theirs: any = await InferenceSession.create('m', { executionProviders: ['theirs'] });
    const { o } = await theirs.run({ i: floats(1, 2) });
    expect(o).toBeInstanceOf(Tensor);
    expect((await failureOf(() => theirs.run({}))).message).toContain("input 'i' is missing in 'feeds'.");
    expect(() => theirs.runSync({ i: floats(1, 2) })).toThrow(/another backend/);
    expect(() => theirs.metadata).toThrow(InferenceError);
  });
});

describe('feeds', () => {
  it('cross as they are, by index', async () => {
    native.inputs = [tensorInfo('a'), tensorInfo('b', 7), { ...tensorInfo('c'), overridable: true }];
    session = await InferenceSession.create('m');
    expect(session.inputNames).toEqual(['a', 'b']);
    expect(session.overridableInputNames).toEqual(['c']);
    const a = Float32Array.of(1, 2);
    await session.run({ b: new Tensor('int64', [3n, 4n], [2, 1]), a: new Tensor('float32', a), c: floats(5) });
    expect([...native.runs[0]!.feeds]).toEqual([
      [0, { kind: 'tensor', type: 'float32', dims: [2], data: a }],
      [1, { kind: 'tensor', type: 'int64', dims: [2, 1], data: BigInt64Array.of(3n, 4n) }],
      [2, { kind: 'tensor', type: 'float32', dims: [1], data: Float32Array.of(5) }],
    ]);
    expect((native.runs[0]!.feeds.get(0) as any).data).toBe(a);
    await session.run({ a: floats(1), b: new Tensor('int64', [1]) });
    expect([...native.runs[1]!.feeds.keys()]).toEqual([0, 1]);
  });

  it('are read property by property, once each', async () => {
    const reads: string[] = [];
    const spy = <T extends object>(object: T, name: string): T =>
      new Proxy(object, {
        get: (target, key) => {
          reads.push(`${name}.${String(key)}`);
          return Reflect.get(target, key);
        },
      });
    const dims = spy([2], 'dims');
    const x = spy({ type: 'float32', dims, location: 'cpu', data: Float32Array.of(1, 2) }, 'x');
    await session.run(spy({ x }, 'feeds'));
    const counts = (key: string) => reads.filter((read) => read === key).length;
    for (const key of ['feeds.x', 'x.type', 'x.location', 'x.data', 'dims.0'])
      expect([key, counts(key)]).toEqual([key, 1]);
  });

  it('may start runs in their getters', async () => {
    const nested: Promise<unknown>[] = [];
    const x = {
      type: 'float32',
      dims: [1],
      location: 'cpu',
      get data() {
        nested.push(session.run({ x: floats(8, 9) }));
        return Float32Array.of(7);
      },
    };
    await session.run({ x });
    await Promise.all(nested);
    const [inner, outer] = native.runs.map(({ feeds }) => (feeds.get(0) as any).data);
    expect([[...inner], [...outer]]).toEqual([[8, 9], [7]]); // prettier-ignore
  });

  it('detached by another feed’s getter are found out before the addon sees them', async () => {
    native.inputs = [tensorInfo('a'), tensorInfo('b')];
    session = await InferenceSession.create('m');
    const a = floats(1, 2);
    const b = {
      type: 'float32',
      dims: [1],
      location: 'cpu',
      get data() {
        structuredClone(a.data.buffer, { transfer: [a.data.buffer] });
        return Float32Array.of(1);
      },
    };
    const error = await failureOf(() => session.run({ a, b }));
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', input: 'a' });
    expect(error.message).toMatch(/not enough space: expected 8, got 0.*detached/);
    expect(native.runs).toHaveLength(0);
  });

  it.each<[string, unknown, RegExp]>([
    [
      'dims of no array',
      { type: 'float32', dims: 1, location: 'cpu', data: Float32Array.of(1) },
      /Tensor\.dims must be an array/,
    ],
    ['a broken dim', { type: 'float32', dims: [0.5], location: 'cpu', data: Float32Array.of(1) }, /dims\[0\].*integer/],
    ['a location of a number', { type: 'float32', dims: [1], data: Float32Array.of(1), location: 1 }, /Tensor\.location must be a string/], // prettier-ignore
    ['a foreign location', { type: 'float32', dims: [1], location: 'gpu-buffer', data: 1 }, /gpu-buffer/],
    [
      'an unknown type',
      { type: 'float33', dims: [1], location: 'cpu', data: 1 },
      /Tensor\.type is not supported: float33/,
    ],
    ['no type', { dims: [1], location: 'cpu', data: 1 }, /Tensor\.type must be a string/],
    ['the wrong array', { type: 'float32', dims: [1], location: 'cpu', data: [1] }, /Float32Array, got Array/],
  ])('with %s are refused', async (_, x, message) => {
    const error = await failureOf(() => session.run({ x }));
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', input: 'x', message: expect.stringMatching(message) });
  });

  it('that are disposed are refused', async () => {
    const x = floats(1);
    x.dispose();
    const error = await failureOf(() => session.run({ x }));
    expect(error).toBeInstanceOf(RangeError);
    expect(error).toMatchObject({ code: 'DISPOSED', input: 'x' });
    expect(error.message).toContain('Tensor.location is not supported.');
  });

  it('that are pinned are taken', async () => {
    await session.run({ x: Tensor.fromPinnedBuffer('float32', Float32Array.of(3)) });
    expect(native.runs).toHaveLength(1);
  });

  it('of sequences, maps and optionals cross too', async () => {
    native.inputs = [
      { ...tensorInfo('s'), kind: 'sequence' },
      { ...tensorInfo('m'), kind: 'map' },
      { ...tensorInfo('o'), optional: true },
    ];
    session = await InferenceSession.create('m');
    expect(session.inputMetadata).toEqual(['s', 'm', 'o'].map((name) => ({ name, isTensor: false })));
    await session.run({ s: [floats(1), floats(2, 3)], m: new Map([['k', 0.5]]), o: null });
    const [s, m, o] = [...native.runs[0]!.feeds.values()] as any[];
    expect(s.items.map((item: any) => [...item.data])).toEqual([[1], [2, 3]]);
    expect(m).toEqual({
      kind: 'map',
      keys: { kind: 'tensor', type: 'string', dims: [1], data: ['k'] },
      values: { kind: 'tensor', type: 'float32', dims: [1], data: Float32Array.of(0.5) },
    });
    expect(o).toEqual({ kind: 'none' } satisfies Decoded);
    await session.run({ s: [], m: new Map([[1, 2]]), o: floats(4) });
    expect((native.runs[1]!.feeds.get(1) as any).keys.data).toEqual(BigInt64Array.of(1n));
    const wrong = await failureOf(() => session.run({ s: floats(1), m: new Map(), o: null }));
    expect(wrong).toMatchObject({ code: 'INVALID_ARGUMENT', input: 's', expected: 'an array of tensors' });
  });
});

describe('results', () => {
  it('are tensors, sequences, maps and nulls', async () => {
    native.outputs = ['t', 's', 'm', 'o'].map((name) => tensorInfo(name));
    native.answer = () => ({
      numbers: Float64Array.from([
        ...[Kind.Tensor, 16, 1, 2],
        ...[Kind.Sequence, 2, Kind.Tensor, 1, 0, Kind.Tensor, 8, 1, 1],
        ...[Kind.Map, Kind.Tensor, 7, 1, 2, -1, Kind.Tensor, 1, 1, 2],
        Kind.None,
      ]),
      items: [
        Uint16Array.of(1, 2).buffer,
        Float32Array.of(5).buffer,
        ['text'],
        BigInt64Array.of(0n, 1n).buffer,
        Float32Array.of(0.25, 0.75).buffer,
      ],
    });
    session = await InferenceSession.create('m');
    const { t, s, m, o } = await session.run({ x: floats(1) });
    expect(t).toMatchObject({ type: 'bfloat16', dims: [2], data: Uint16Array.of(1, 2) });
    expect(s.map(({ type, dims }: any) => [type, dims])).toEqual([['float32', []], ['string', [1]]]); // prettier-ignore
    expect(m).toEqual(new Map([[0n, 0.25], [1n, 0.75]])); // prettier-ignore
    expect(o).toBeNull();
  });

  it('come in the order of the model, for the outputs asked for', async () => {
    native.outputs = [tensorInfo('a'), tensorInfo('b')];
    const item = () => Float32Array.of(1).buffer;
    native.answer = ({ outputs }) => resultOf(...outputs.map(() => ({ type: 1, dims: [1], item: item() })));
    session = await InferenceSession.create('m');
    expect(Object.keys(await session.run({ x: floats(1) }, ['b', 'a']))).toEqual(['a', 'b']);
    expect(Object.keys(await session.run({ x: floats(1) }, { b: null }))).toEqual(['b']);
    expect(native.runs[1]!.outputs).toEqual([{ index: 1, placement: Placement.JavaScript }]);
  });

  it('are written into a tensor of any copy of onnxruntime-common', async () => {
    const target = { type: 'float32', dims: [1], location: 'cpu', data: new Float32Array(1) };
    native.answer = () => ({ numbers: Float64Array.of(Kind.InPlace), items: [] });
    const { y } = await session.run({ x: floats(1) }, { y: target });
    expect(y).toBe(target);
    const [output] = native.runs[0]!.outputs;
    expect(output).toMatchObject({ placement: Placement.Target, target: { kind: 'tensor', dims: [1] } });
    expect((output!.target as any).data).toBe(target.data);
  });

  it('are copied where the engine cannot write', async () => {
    const shared = new Float32Array(new SharedArrayBuffer(4));
    native.answer = () => resultOf({ type: 1, dims: [1], item: Float32Array.of(42).buffer });
    const target = new Tensor('float32', shared);
    expect((await session.run({ x: floats(1) }, { y: target })).y).toBe(target);
    expect(shared[0]).toBe(42);

    native.outputs = [tensorInfo('y', 8)];
    native.answer = () => resultOf({ type: 8, dims: [2], item: ['a', 'b'] });
    session = await InferenceSession.create('m');
    const strings = new Tensor('string', ['', '']);
    expect((await session.run({ x: floats(1) }, { y: strings })).y).toBe(strings);
    expect(strings.data).toEqual(['a', 'b']);
    const short = await failureOf(() => session.run({ x: floats(1) }, { y: new Tensor('string', ['']) }));
    expect(short).toMatchObject({ code: 'SHAPE_MISMATCH', output: 'y', expected: 'string[1]', actual: 'string[2]' });
    const frozen = { type: 'string', dims: [2], location: 'cpu', data: Object.freeze(['', '']) };
    const refused = await failureOf(() => session.run({ x: floats(1) }, { y: frozen }));
    expect(refused).toMatchObject({ name: 'TypeError', code: 'INVALID_ARGUMENT', output: 'y' });
  });

  it('are not written into data of another kind', async () => {
    const target = { type: 'float32', dims: [1], location: 'cpu', data: [0] };
    const error = await failureOf(() => session.run({ x: floats(1) }, { y: target }));
    expect(error).toMatchObject({ name: 'TypeError', output: 'y' });
    expect(error.message).toBe(
      "output 'y': the data of a preallocated float32 tensor must be Float32Array, got Array.",
    );
  });
});

describe('pending runs', () => {
  beforeEach(() => {
    native.asynchronous = true;
  });
  const wire = resultOf({ type: 1, dims: [1], item: Float32Array.of(3).buffer });

  it('settle through the callback', async () => {
    const running = session.run({ x: floats(1) });
    native.pending[0]!(undefined, wire);
    expect([...(await running).y.data]).toEqual([3]);
    const failing = failureOf(() => session.run({ x: floats(1) }));
    native.pending[1]!({ code: 'INTERNAL', message: 'no', node: 'n', opType: 'Gather' }, undefined);
    expect(await failing).toMatchObject({ code: 'INTERNAL', node: 'n', opType: 'Gather' });
  });

  it('are cancelled by their signal, and settle when they have ended', async () => {
    const controller = new AbortController();
    const running = failureOf(() => session.run({ x: floats(1) }, { signal: controller.signal }));
    controller.abort('enough');
    expect(addon.cancelled).toEqual([1]);
    native.pending[0]!({ code: 'ABORTED', message: 'aborted' }, undefined);
    expect(await running).toMatchObject({ name: 'AbortError', code: 'ABORTED', cause: 'enough' });
  });

  it('share one listener of a signal, which goes with the last of them', async () => {
    const { signal } = new AbortController();
    const runs = Array.from({ length: 20 }, () => session.run({ x: floats(1) }, { signal }));
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    native.pending.forEach((settle) => settle(undefined, wire));
    await Promise.all(runs);
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  it('that share a signal are all cancelled by it', () => {
    const controller = new AbortController();
    const { signal } = controller;
    const runs = [1, 2, 3].map(() => failureOf(() => session.run({ x: floats(1) }, { signal })));
    native.pending[1]!(undefined, wire);
    controller.abort();
    expect(addon.cancelled).toEqual([1, 3]);
    native.pending.forEach((settle) => settle({ code: 'ABORTED', message: 'aborted' }, undefined));
    return Promise.allSettled(runs);
  });

  it('that succeed in time stay successes', async () => {
    const controller = new AbortController();
    const running = session.run({ x: floats(1) }, { signal: controller.signal });
    controller.abort();
    native.pending[0]!(undefined, wire);
    expect([...(await running).y.data]).toEqual([3]);
  });

  it('that outlast `timeout` and those that `signal` ends are told apart', async () => {
    native.asynchronous = true;
    const ended = { code: 'ABORTED', message: 'ended' } as const;
    const late = failureOf(() => session.run({ x: floats(1) }, { timeout: 5 }));
    native.pending[0]!(ended, undefined);
    expect(await late).toMatchObject({ name: 'TimeoutError', code: 'ABORTED' });
    const controller = new AbortController();
    const aborted = failureOf(() => session.run({ x: floats(1) }, { timeout: 5, signal: controller.signal }));
    controller.abort('enough');
    native.pending[1]!(ended, undefined);
    expect(await aborted).toMatchObject({ name: 'AbortError', code: 'ABORTED', cause: 'enough' });
  });

  it('take tensors without a location, as onnxruntime 1.14 made them', async () => {
    native.asynchronous = false;
    await session.run({ x: { type: 'float32', dims: [1], size: 1, data: Float32Array.of(7) } });
    expect(native.runs[0]!.feeds.get(0)).toMatchObject({ kind: 'tensor', data: Float32Array.of(7) });
  });

  it('give and take tensors as those of onnxruntime 1.14 where env.ownTensorData says so', async () => {
    native.asynchronous = false;
    const kept = Object.assign({}, floats(1));
    expect(kept).not.toHaveProperty('data');
    (env as any).ownTensorData = true;
    try {
      const copy = Object.assign({}, floats(1));
      expect(copy).toMatchObject({ type: 'float32', dims: [1], size: 1, data: Float32Array.of(1) });
      const { y } = (await session.run({ x: { type: 'float32', dims: [1], size: 1, data: copy.data } })) as any;
      expect(Object.assign({}, y)).toMatchObject({ type: 'float32', dims: [1], data: Float32Array.of(1) });
    } finally {
      delete (env as any).ownTensorData;
    }
  });

  it('do not begin once aborted or told to terminate', async () => {
    for (const options of [{ signal: AbortSignal.abort() }, { terminate: true }]) {
      expect(await failureOf(() => session.run({ x: floats(1) }, options))).toMatchObject({ code: 'ABORTED' });
    }
    expect(native.runs).toHaveLength(0);
  });

  it('keep the options of `run(feeds, undefined, options)`', async () => {
    void session.run({ x: floats(1) }, undefined, { tag: 'kept' });
    expect(native.runOptions[0]).toMatchObject({ tag: 'kept' });
  });
});

describe('engine tensors', () => {
  it('are read and written by copies', async () => {
    const tensor: any = session.allocate('float32', [2]);
    expect(tensor).toBeInstanceOf(EngineTensor);
    expect(tensor).toMatchObject({ type: 'float32', dims: [2], size: 2, location: 'cpu-pinned', device: 'cpu' });
    tensor.setData(Float32Array.of(1, 2));
    expect(tensor.data).toEqual(Float32Array.of(1, 2));
    expect(tensor.data).not.toBe(tensor.data);
    expect(await tensor.getData()).toEqual(Float32Array.of(1, 2));
    expect(() => tensor.setData(Float32Array.of(1))).toThrow(/not enough space/);
    expect(() => tensor.setData(Int32Array.of(1, 2))).toThrow(TypeError);
    expect(() => tensor.reshape([1, 2])).toThrow();
    tensor.dispose();
    tensor.dispose();
    expect(tensor.location).toBe('none');
    expect(() => tensor.data).toThrow('The tensor is disposed.');
    expect(() => session.allocate('float32', [-1])).toThrow(RangeError);
    expect(() => session.allocate('float33', [1])).toThrow(TypeError);
  });

  it('on a device are downloaded only by getData', async () => {
    const tensor = new EngineTensor(new FakeTensor(1, [1], 'null:0'));
    expect(tensor.location).toBe('gpu-buffer');
    expect(() => tensor.data).toThrow(/not on CPU/);
    expect(await tensor.getData(true)).toEqual(Float32Array.of(0));
    expect(tensor.location).toBe('none');
  });

  it('cross as handles', async () => {
    const x = session.allocate('float32', [1]);
    await session.run({ x });
    expect(native.runs[0]!.feeds.get(0)).toMatchObject({ kind: 'handle', handle: expect.any(FakeTensor) });
    x.dispose();
    expect(await failureOf(() => session.run({ x }))).toMatchObject({ code: 'DISPOSED', input: 'x' });
  });

  it("come back for outputs that prefer 'cpu-pinned'", async () => {
    session = await InferenceSession.create('m', { preferredOutputLocation: { y: 'cpu-pinned' } });
    native.answer = () => ({ numbers: Float64Array.of(Kind.Handle), items: [new FakeTensor(1, [1], 'cpu')] });
    const { y } = await session.run({ x: floats(1) });
    expect(y).toBeInstanceOf(EngineTensor);
    expect(y).toMatchObject({ location: 'cpu-pinned', data: Float32Array.of(0) });
    expect(native.runs[0]!.outputs[0]).toMatchObject({ placement: Placement.Device, device: 'cpu' });
  });

  it('come back for outputs that prefer a device', async () => {
    native.devices = ['null:0', 'cpu'];
    session = await InferenceSession.create('m', { preferredOutputLocation: 'gpu-buffer' });
    native.answer = () => ({ numbers: Float64Array.of(Kind.Handle), items: [new FakeTensor(1, [1], 'null:0')] });
    const { y } = await session.run({ x: floats(1) });
    expect(y).toBeInstanceOf(EngineTensor);
    expect(native.runs[0]!.outputs[0]).toMatchObject({ placement: Placement.Device, device: 'null:0' });
  });
});

describe('IoBinding', () => {
  it('reads JavaScript’s tensors at each run and keeps its outputs', async () => {
    const binding: any = session.createIoBinding();
    expect(binding).toBeInstanceOf(IoBinding);
    const x = floats(1);
    binding.bindInput('x', x).bindOutput('y');
    native.answer = () => ({ numbers: Float64Array.of(Kind.Handle), items: [new FakeTensor(1, [1], 'cpu')] });
    await session.run(binding);
    expect(native.runs[0]!.outputs[0]).toMatchObject({ placement: Placement.Device, device: 'cpu' });
    expect(binding.outputs.y).toBeInstanceOf(EngineTensor);
    x.data[0] = 5;
    session.runSync(binding);
    expect((native.runs[1]!.feeds.get(0) as any).data).toEqual(Float32Array.of(5));

    const target = session.allocate('float32', [1]);
    binding.bindOutput('y', target);
    native.answer = () => ({ numbers: Float64Array.of(Kind.InPlace), items: [] });
    expect((await binding.run()).y).toBe(target);
    expect(native.runs[2]!.outputs[0]).toMatchObject({ placement: Placement.Target, target: { kind: 'handle' } });
  });

  it('computes all outputs where none is bound, and forgets', async () => {
    const binding: any = session.createIoBinding();
    binding.bindInput('x', floats(1)).bindOutput('y');
    binding.clearOutputs();
    await binding.run();
    expect(native.runs[0]!.outputs[0]).toMatchObject({ placement: Placement.JavaScript });
    binding.clear();
    expect(binding.outputs).toEqual({});
    expect((await failureOf(() => binding.run())).message).toContain("input 'x' is missing");
  });

  it('checks names and targets', () => {
    const binding: any = session.createIoBinding();
    expect(() => binding.bindInput('xx', floats(1))).toThrow(/no input 'xx'. Did you mean 'x'/);
    for (const value of [5, 'x', undefined] as any[])
      expect(() => binding.bindInput('x', value)).toThrow(/bound to a value of the model's, got/);
    expect(() => binding.bindOutput('nothing like it')).toThrow(RangeError);
    expect(() => binding.bindOutput('y', 5)).toThrow(TypeError);
    expect(() => binding.bindOutput('y', null)).toThrow(TypeError);
  });
});

describe('profiles', () => {
  it('are summarised by operator', async () => {
    session.startProfiling();
    const node = (name: string, opType: string, ts: number, dur: number) =>
      ({ cat: 'Node', name: `${name}_kernel_time`, dur, ts, args: { op_name: opType, provider: 'cpu' } }); // prettier-ignore
    const events = [
      node('a', 'Conv', 0, 30),
      node('b', 'Relu', 30, 10),
      node('c', 'Conv', 40, 60),
      { cat: 'Session', name: 'model_run', dur: 120, ts: 0, args: {} },
    ];
    native.profile = { path: 'p.json', trace: JSON.stringify(events) };
    const summary = session.endProfiling();
    expect(summary).toMatchObject({ path: 'p.json', runs: 1, runMicroseconds: 120, events });
    expect(summary.operators).toEqual([
      { opType: 'Conv', provider: 'cpu', count: 2, totalMicroseconds: 90, share: 0.9 },
      { opType: 'Relu', provider: 'cpu', count: 1, totalMicroseconds: 10, share: 0.1 },
    ]);
    expect(session.endProfiling()).toBeUndefined();
  });

  it('end with the session', async () => {
    session = await InferenceSession.create('m', { enableProfiling: true, profileFilePrefix: 'p' });
    session.startProfiling();
    await session.release();
    expect(native.profile).toBeUndefined();
  });

  it('count the nodes of bodies once', () => {
    session.startProfiling();
    const node = (opType: string, ts: number, dur: number, tid = 1) =>
      ({ cat: 'Node', name: `${opType}_kernel_time`, ts, dur, tid, args: { op_name: opType, provider: 'cpu' } }); // prettier-ignore
    const events = [
      node('Relu', 0, 10),
      node('Mul', 22, 3),
      node('If', 21, 9),
      node('Mul', 31, 4),
      node('Abs', 25, 50, 2), // another thread's
      node('Loop', 20, 30),
    ];
    native.profile = { path: '', trace: JSON.stringify(events) };
    const own = session
      .endProfiling()
      .operators.map(({ opType, totalMicroseconds }: any) => [opType, totalMicroseconds]);
    expect(Object.fromEntries(own)).toEqual({ Relu: 10, Mul: 7, If: 6, Loop: 17, Abs: 50 });
  });
});

describe('release', () => {
  it('is final', async () => {
    await session.release();
    for (const use of [
      () => session.run({ x: floats(1) }),
      () => session.runSync({ x: floats(1) }),
      () => session.release(),
      () => session.endProfiling(),
      () => session.allocate('float32', [1]),
    ]) {
      expect(await failureOf(use)).toMatchObject({ code: 'DISPOSED', message: 'Session already disposed.' });
    }
    await session[Symbol.asyncDispose]();
    session[Symbol.dispose]();
    expect(session.inputNames).toEqual(['x']);
    expect(session.metadata.producerName).toBe('double');
  });
});
