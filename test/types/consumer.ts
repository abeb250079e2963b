// What programs that are written for onnxruntime-node do with its types, every one of them. types.test.ts compiles it
// against onnxruntime-node's own declarations and, with nothing but the module's name replaced, against infernode's.
import * as ort from 'onnxruntime-node';
import { env, InferenceSession, listSupportedBackends, registerBackend, Tensor } from 'onnxruntime-node';
import type { Backend, Env, OnnxValue, TensorConstructor, TypedTensor } from 'onnxruntime-node';

// Sessions.
const providers: InferenceSession.ExecutionProviderConfig[] = [
  'cpu',
  { name: 'cpu', useArena: true } satisfies InferenceSession.CpuExecutionProviderOption,
  { name: 'cuda', deviceId: 0 } satisfies InferenceSession.CudaExecutionProviderOption,
  { name: 'dml', deviceId: 0 } satisfies InferenceSession.DmlExecutionProviderOption,
  { name: 'tensorrt', deviceId: 0 } satisfies InferenceSession.TensorRtExecutionProviderOption,
  { name: 'wasm' } satisfies InferenceSession.WebAssemblyExecutionProviderOption,
  { name: 'webgl' } satisfies InferenceSession.WebGLExecutionProviderOption,
  { name: 'xnnpack' } satisfies InferenceSession.XnnpackExecutionProviderOption,
  { name: 'webgpu', preferredLayout: 'NHWC' } satisfies InferenceSession.WebGpuExecutionProviderOption,
  { name: 'qnn', backendType: 'htp' } satisfies InferenceSession.QnnExecutionProviderOption,
  { name: 'coreml', coreMlFlags: 1, useCPUOnly: false } satisfies InferenceSession.CoreMLExecutionProviderOption,
  { name: 'nnapi', useFP16: true } satisfies InferenceSession.NnapiExecutionProviderOption,
];
const webnn: InferenceSession.WebNNExecutionProviderOption = { name: 'webnn', deviceType: 'gpu' };
export type WebNN = [
  InferenceSession.WebNNContextOptions,
  InferenceSession.WebNNOptionsWithoutMLContext,
  InferenceSession.WebNNOptionsWithMLContext,
  InferenceSession.WebNNOptionsWebGpu,
];
const known: InferenceSession.ExecutionProviderName = 'cuda';
const option: InferenceSession.ExecutionProviderOption = { name: known };
const cuda: InferenceSession.ExecutionProviderOptionMap['cuda'] = { name: 'cuda' };
const files: readonly ort.ExternalDataFileType[] = [
  'weights.bin' satisfies ort.FileUrlOrPath,
  { path: 'w', data: new Uint8Array(1) satisfies ort.FileData } satisfies ort.ExternalDataFileDescription,
  { path: 'b', data: new Blob([]) satisfies ort.FileBlob satisfies ort.FileType },
];
const model: ort.OnnxModelOptions = { externalData: files };
const options: InferenceSession.SessionOptions = {
  ...model,
  executionProviders: [...providers, webnn, option, cuda],
  intraOpNumThreads: 1,
  interOpNumThreads: 1,
  freeDimensionOverrides: { batch: 1 },
  graphOptimizationLevel: 'all',
  enableCpuMemArena: true,
  enableMemPattern: true,
  executionMode: 'sequential',
  optimizedModelFilePath: 'o.onnx',
  enableProfiling: true,
  profileFilePrefix: 'p',
  logId: 'id',
  logSeverityLevel: 2,
  logVerbosityLevel: 0,
  preferredOutputLocation: { y: 'cpu' satisfies ort.OnnxValueDataLocation },
  enableGraphCapture: false,
  extra: { session: { disable_prepacking: '1' } },
};
const runOptions: InferenceSession.RunOptions = {
  logSeverityLevel: 2,
  logVerbosityLevel: 0,
  terminate: false,
  tag: 't',
  extra: { memory: { enable_memory_arena_shrinkage: 'cpu:0' } },
};
const factory: ort.InferenceSessionFactory = InferenceSession;

export async function sessions(bytes: Uint8Array, feeds: InferenceSession.FeedsType): Promise<OnnxValue[]> {
  const session: InferenceSession = await InferenceSession.create('model.onnx', options);
  await InferenceSession.create(bytes);
  await InferenceSession.create(bytes.buffer, options);
  await factory.create(bytes.buffer, 0, 8, options);
  const fetches: InferenceSession.FetchesType = ['y'];
  const places: InferenceSession.NullableOnnxValueMapType = { y: null };
  const all: InferenceSession.ReturnType = await session.run(feeds);
  const map: InferenceSession.OnnxValueMapType = await session.run(feeds, fetches, runOptions);
  const { y } = await session.run(feeds, places);
  await session.run(feeds, runOptions);
  await session.run({ x: new Tensor('float32', [1]), z: y });
  for (const meta of session.inputMetadata satisfies readonly InferenceSession.ValueMetadata[]) {
    const base: InferenceSession.ValueMetadataBase = meta;
    if (meta.isTensor) {
      const tensor: InferenceSession.TensorValueMetadata = meta;
      tensor.shape.map((dim: number | string) => (typeof dim === 'number' ? dim : 0));
    } else {
      const other: InferenceSession.NonTensorValueMetadata = meta;
      void [base.name, other.name];
    }
  }
  const names: readonly string[] = [...session.inputNames, ...session.outputNames];
  session.startProfiling();
  session.endProfiling();
  await session.release();
  return [y, all[names[0] ?? ''] as Tensor, ...Object.values(map)];
}

// Tensors.
export async function tensors(image: ImageData, element: HTMLImageElement, bitmap: ImageBitmap): Promise<unknown[]> {
  const f32: TypedTensor<'float32'> = new Tensor('float32', Float32Array.of(1, 2), [2]);
  const i64: TypedTensor<'int64'> = new Tensor('int64', [1n, 2n]);
  const inferred: TypedTensor<'bool'> = new Tensor([true]);
  const text: TypedTensor<'string'> = new Tensor('string', ['a'], [1]);
  const constructor: TensorConstructor = Tensor;
  const maker: ort.TensorFactory = Tensor;
  const copy: Float32Array = await f32.getData(true);
  const type: Tensor.Type = f32.type;
  const element64: Tensor.ElementTypeMap['int64'] = 1n;
  const dataOf: Tensor.DataTypeMap['uint8'] = Uint8Array.of(1);
  const data: Tensor.DataType = f32.data;
  const one: Tensor.ElementType = 1;
  const location: Tensor.DataLocation = f32.location;
  const converter: ort.ConversionUtils = f32;
  f32.reshape([1, 2]).dispose();
  const norm = { mean: 255, bias: [0, 0, 0] as [number, number, number] };
  const layout: ort.ImageTensorLayout = 'NCHW';
  const format: ort.ImageFormat = 'RGB';
  const shared: ort.OptionsTensorFormat & ort.OptionsTensorLayout & ort.OptionsTensorDataType = {
    tensorFormat: format,
    tensorLayout: layout,
    dataType: 'float32',
  };
  const resized: ort.OptionResizedDimensions = { resizedHeight: 8, resizedWidth: 8 };
  const sized: ort.OptionsDimensions & ort.OptionsFormat = { height: 8, width: 8, format };
  const normal: ort.OptionsNormalizationParameters = { norm };
  const fromData: ort.TensorFromImageDataOptions = { ...shared, ...resized, ...normal };
  const fromElement: ort.TensorFromImageElementOptions = fromData;
  const fromBitmap: ort.TensorFromImageBitmapOptions = fromData;
  const fromUrl: ort.TensorFromUrlOptions = { ...fromData, ...sized };
  const pictures: (TypedTensor<'float32'> | TypedTensor<'uint8'>)[] = [
    await Tensor.fromImage(image, fromData),
    await Tensor.fromImage(element, fromElement),
    await Tensor.fromImage(bitmap, fromBitmap),
    await Tensor.fromImage('picture.png', fromUrl),
  ];
  const url: string = pictures[0]!.toDataURL({ format, norm } satisfies ort.TensorToDataUrlOptions);
  const back: ImageData = f32.toImageData({ tensorLayout: layout } satisfies ort.TensorToImageDataOptions);
  const pinned: TypedTensor<'uint8'> = Tensor.fromPinnedBuffer('uint8', Uint8Array.of(1), [1]);
  return [i64, inferred, text, constructor, maker, copy, type, element64, dataOf, data, one, location, converter, url, back, pinned]; // prettier-ignore
}

export function devices(
  texture: Tensor.TextureType,
  gpuBuffer: Tensor.GpuBufferType,
  mlTensor: Tensor.MLTensorType,
): Tensor[] {
  const dims = [1];
  const types: [Tensor.TextureDataTypes, Tensor.GpuBufferDataTypes, Tensor.MLTensorDataTypes, Tensor.CpuPinnedDataTypes] = ['float32', 'float32', 'float32', 'float32']; // prettier-ignore
  const inTexture: ort.TextureConstructorParameters = { location: 'texture', type: 'float32', texture, dims };
  const inBuffer: ort.GpuBufferConstructorParameters = { location: 'gpu-buffer', type: types[1], gpuBuffer, dims };
  const inMl: ort.MLTensorConstructorParameters = { location: 'ml-tensor', type: types[2], mlTensor, dims };
  const inPinned: ort.CpuPinnedConstructorParameters = {
    location: 'cpu-pinned',
    type: 'float32',
    data: Float32Array.of(1),
    dims,
  };
  const textureOptions: ort.TensorFromTextureOptions<'float32'> = { width: 1, height: 1, dispose: () => undefined };
  const bufferOptions: ort.TensorFromGpuBufferOptions<'float32'> = { dims, dataType: 'float32' };
  const mlOptions: ort.TensorFromMLTensorOptions<'float32'> = { dims, download: async () => Float32Array.of(1) };
  void [inTexture, inBuffer, inMl, inPinned];
  return [
    Tensor.fromTexture(texture, textureOptions),
    Tensor.fromGpuBuffer(gpuBuffer, bufferOptions),
    Tensor.fromMLTensor(mlTensor, mlOptions),
  ];
}

// The environment, and backends of one's own.
export const flags: Env = env;
flags.logLevel = 'error';
flags.debug = true;
flags.trace = false;
const wasm: Env.WebAssemblyFlags = env.wasm;
const prefix: Env.WasmPathPrefix = 'https://example.com/';
const paths: Env.WasmPrefixOrFilePaths = { wasm: 'a.wasm' } satisfies Env.WasmFilePaths;
wasm.wasmPaths = prefix;
wasm.wasmPaths = paths;
wasm.numThreads = 2;
wasm.proxy = false;
const webgl: Env.WebGLFlags = env.webgl;
const webgpu: Env.WebGpuFlags = env.webgpu;
webgl.pack = true;
webgpu.powerPreference = 'low-power';
webgpu.profiling = {
  mode: 'default',
  ondata: (profile: Env.WebGpuProfilingData) => {
    const first: Env.WebGpuProfilingDataV1 = profile;
    const shapes: readonly Env.WebGpuProfilingDataV1TensorMetadata[] = first.inputsMetadata;
    return void shapes;
  },
};
export const version: string | undefined = env.versions.node;

class Handler implements ort.InferenceSessionHandler {
  inputNames: readonly string[] = ['x'];
  outputNames: readonly string[] = ['y'];
  inputMetadata: readonly InferenceSession.ValueMetadata[] = [];
  outputMetadata: readonly InferenceSession.ValueMetadata[] = [];
  async dispose(): Promise<void> {}
  startProfiling(): void {}
  endProfiling(): void {}
  async run(
    feeds: ort.SessionHandler.FeedsType,
    fetches: ort.SessionHandler.FetchesType,
    _options: InferenceSession.RunOptions,
  ): Promise<ort.SessionHandler.ReturnType> {
    return Object.keys(fetches).length > 0 ? { y: feeds['x'] as OnnxValue } : {};
  }
}
const backend: Backend = {
  init: async () => undefined,
  createInferenceSessionHandler: async () => new Handler(),
};
registerBackend('mine', backend, 10);
export const names: string[] = listSupportedBackends().map(({ name, bundled }) => (bundled ? name : ''));
export type Impossible = ort.NonTensorType;
ort.TRACE('cpu', 'label');
ort.TRACE_FUNC_BEGIN();
ort.TRACE_FUNC_END('extra');
ort.TRACE_EVENT_BEGIN('run');
ort.TRACE_EVENT_END('run');
