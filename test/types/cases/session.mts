import infernode, * as ort from 'infernode';
import { EngineTensor, InferenceError, InferenceSession, type IoBinding, Tensor } from 'infernode';
import type { InferenceSession as CommonSession } from 'onnxruntime-common';

const session: InferenceSession = await InferenceSession.create('model.onnx');
await InferenceSession.create(new Uint8Array(1), { intraOpNumThreads: 1, signal: new AbortController().signal });
await InferenceSession.create(new ArrayBuffer(1), 0, 1, { executionProviders: ['cpu', { name: 'cuda', deviceId: 0 }] });
await InferenceSession.create(new SharedArrayBuffer(1));
await InferenceSession.create(5); // error TS2769
await InferenceSession.create('model.onnx', { graphOptimizationLevel: 'some' }); // error TS2769
await InferenceSession.create('model.onnx', { intraOpNumThread: 1 }); // error TS2769
await InferenceSession.create('model.onnx', 0, 1); // error TS2345
new InferenceSession(); // error TS2673

// A session is one to code that is typed by onnxruntime-common, and the class is a factory to it.
const common: CommonSession = session;
const factory: ort.InferenceSessionFactory = InferenceSession;

// Runs.
const feeds: InferenceSession.FeedsType = { x: new Tensor('float32', [1]) };
const results: InferenceSession.ReturnType = await session.run(feeds);
const y: Tensor | undefined = results['y'];
await session.run(feeds, ['y']);
await session.run(feeds, { y: null }, { tag: 't', timeout: 100 });
await session.run(feeds, undefined, { signal: AbortSignal.timeout(5) });
await session.run({ sequence: [new Tensor('float32', [1])], map: new Map([['a', 1]]), optional: null });
await session.run({ x: 5 }); // error TS2322
await session.run(feeds, { tag: 5 }); // error TS2769
await session.run(feeds, [5]); // error TS2769
const sync: InferenceSession.ReturnType = InferenceSession.createSync('model.onnx').runSync(feeds);

// Options.
const options: InferenceSession.SessionOptions = {
  executionProviders: ['cpu', 'webgpu', { name: 'coreml', coreMlFlags: 1 }, { name: 'null', ops: ['Add'] }],
  graphOptimizationLevel: 'layout',
  executionMode: 'parallel',
  externalData: ['w.bin', { path: 'w', data: new Uint8Array(1) }],
  freeDimensionOverrides: { batch: 1 },
  preferredOutputLocation: { y: 'gpu-buffer' },
  extra: { session: { disable_prepacking: '1' } },
  float32MatmulPrecision: 'high',
  memoryLimit: 1e9,
  modelCacheDir: 'cache',
};
const runOptions: InferenceSession.RunOptions = { logSeverityLevel: 3, terminate: false };
const level: InferenceSession.RunOptions = { logSeverityLevel: 7 }; // error TS2322

// Metadata.
for (const value of session.inputMetadata) {
  if (value.isTensor) {
    const shape: readonly (number | string)[] = value.shape;
    const type: Tensor.Type = value.type;
    void [shape, type];
  } else {
    void value.type; // error TS2339
  }
}
const opset: number | undefined = session.metadata.opsets['ai.onnx'];
const custom: Readonly<Record<string, string>> = session.metadata.custom;
const provider: string | undefined = session.placement[0]?.provider;

// Binding.
const binding: IoBinding = session.createIoBinding();
const memory: EngineTensor = session.allocate('float32', [2, 3], 'cpu');
binding.bindInput('x', memory).bindOutput('y', 'cuda:0').bindOutput('z', memory);
await session.run(binding);
const bound: Tensor | undefined = binding.outputs['y'];

// Profiles, errors, disposal.
const slowest: string | undefined = session.endProfiling()?.operators[0]?.opType;
try {
  await session.release();
} catch (error) {
  if (error instanceof InferenceError && error.code === 'DISPOSED') void error.input;
  if (error instanceof InferenceError && error.code === 'NONSENSE') void error; // error TS2367
}
{
  await using scoped = await InferenceSession.create('model.onnx');
  using other = InferenceSession.createSync('model.onnx');
  void [scoped, other];
}

// Values of the module, by name, namespace and default.
const names: string[] = ort.listSupportedBackends().map(({ name }) => name);
infernode.env.logLevel = 'error';
infernode.env.logLevel = 'loud'; // error TS2322
ort.registerBackend('mine', {} as ort.Backend, 1);
ort.TRACE('cpu', 'label');

export { bound, common, custom, factory, level, names, opset, options, provider, runOptions, slowest, sync, y };
