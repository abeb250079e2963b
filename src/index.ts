import './start-up/early-load.js';

import { registerBackends } from './backend.js';
import { installImages } from './tensor/image-methods.js';
import { warmUp } from './start-up/warm-up.js';

registerBackends();
installImages();
warmUp();

export { createBatcher, type Batcher, type BatcherRunOptions, type TypedBatcher } from './batching/batcher.js';
export type { BatcherOptions, PaddingRule } from './batching/batcher-options.js';
export { listDevices, listSupportedBackends, type DeviceInfo } from './providers.js';
export { EngineTensor } from './tensor/engine-tensor.js';
export { InferenceError, type ErrorCode, type ErrorFields } from './errors.js';
export {
  InferenceSession,
  type ModelMetadata,
  type NodePlacement,
  type TypedInferenceSession,
} from './inference-session.js';
export type { ModelStream } from './model-source.js';
export type { LogListener, LogMessage } from './options/log-message.js';
export type { LoadProgress } from './options/load-progress.js';
export type { FeedsOf, ModelTensor, ModelTypes, ModelValue, OutputsOf } from './model-types.js';
export type { GraphNode, GraphValue, NodeMemory, SessionGraph, SessionMemory } from './inspect/graph.js';
export type { WarmUpShapes } from './inspect/warm-feeds.js';
export type { FromImageOptions, ImageLike, ImageSource, ToImageOptions } from './image/image-types.js';
export { IoBinding } from './io-binding.js';
export type { OperatorProfile, ProfileEvent, ProfileSummary } from './profile-summary.js';
export type { NullExecutionProviderOption, ProviderOption } from './options/provider-options.js';
export type { SharedSession } from './shared-session.js';
export { Tensor } from './tensor/tensor.js';
export type { Float16ArrayLike, InferenceValue, TensorConstructor } from './tensor/tensor-types.js';

export {
  env,
  registerBackend,
  TRACE,
  TRACE_EVENT_BEGIN,
  TRACE_EVENT_END,
  TRACE_FUNC_BEGIN,
  TRACE_FUNC_END,
} from 'onnxruntime-common';
export type {
  Backend,
  ConversionUtils,
  CpuPinnedConstructorParameters,
  Env,
  ExternalDataFileDescription,
  ExternalDataFileType,
  FileBlob,
  FileData,
  FileType,
  FileUrlOrPath,
  GpuBufferConstructorParameters,
  ImageFormat,
  ImageTensorLayout,
  InferenceSessionFactory,
  InferenceSessionHandler,
  MLTensorConstructorParameters,
  NonTensorType,
  OnnxModelOptions,
  OnnxValue,
  OnnxValueDataLocation,
  OptionResizedDimensions,
  OptionsDimensions,
  OptionsFormat,
  OptionsNormalizationParameters,
  OptionsTensorDataType,
  OptionsTensorFormat,
  OptionsTensorLayout,
  SessionHandler,
  TensorFactory,
  TensorFromGpuBufferOptions,
  TensorFromImageBitmapOptions,
  TensorFromImageDataOptions,
  TensorFromImageElementOptions,
  TensorFromMLTensorOptions,
  TensorFromTextureOptions,
  TensorFromUrlOptions,
  TensorToDataUrlOptions,
  TensorToImageDataOptions,
  TextureConstructorParameters,
  TypedTensor,
} from 'onnxruntime-common';
