import { axes, choice, flag, names, number } from './option-table.js';

/** Operators whose values are quantized where nothing else is said: those that the Python tool's two formats know. */
const operators = [
  ...['ArgMax', 'Conv', 'Gemm', 'MatMul', 'Add', 'Mul', 'Relu', 'Clip', 'LeakyRelu', 'Sigmoid', 'MaxPool'],
  ...['GlobalAveragePool', 'Split', 'Pad', 'Reshape', 'Squeeze', 'Unsqueeze', 'Flatten', 'Resize', 'AveragePool'],
  ...['Concat', 'Softmax', 'Where', 'Gather', 'Transpose', 'ConvTranspose', 'Slice', 'GatherElements'],
  ...['InstanceNormalization', 'LayerNormalization', 'BatchNormalization', 'TopK', 'CumSum'],
];

/** The options of `quantizeStatic`: names and defaults are those of `onnxruntime.quantization.quantize_static`. */
export const staticTable = {
  opTypesToQuantize: names('operators that read and make codes; others can be named, too', operators),
  perChannel: flag('weights have a scale for each output channel'),
  reduceRange: flag('weights have 7 of 8 bits, for CPUs with AVX2 or AVX512 and without VNNI'),
  activationType: choice(['QInt8', 'QUInt8', 'QInt16', 'QUInt16'], 'QInt8', 'the type of activations'),
  weightType: choice(['QInt8', 'QUInt8', 'QInt16', 'QUInt16', 'QInt4', 'QUInt4'], 'QInt8', 'the type of weights'),
  nodesToQuantize: names('where any are named, others stay as they are'),
  nodesToExclude: names('nodes that stay as they are'),
  calibrateMethod: choice(
    ['MinMax', 'Entropy', 'Percentile', 'Distribution'],
    'MinMax',
    'how ranges are found of what runs on the data make',
  ),
  useExternalDataFormat: flag(
    'large tensors go into a file beside the model, which a model over 2 GB does in any case',
  ),
} as const;

/** Its `extra_options` that the calibration knows, by their names there. */
export const calibrationExtraTable = {
  CalibTensorRangeSymmetric: flag('ranges are as long on both sides of 0; by default with Percentile', null),
  CalibStridedMinMax: number('ranges of so many runs are found, and then joined', null, [1, 1e9, 'whole']),
  CalibMovingAverage: flag('MinMax takes the mean of the runs, and joins strides by a moving average'),
  CalibMovingAverageConstant: number('the share that the newer range has in it', 0.01, [0, 1]),
  CalibPercentile: number('so many percent of the values are within the range of Percentile', 99.999, [0, 100]),
} as const;

/** Its `extra_options` that the engine knows, by their names there. */
export const staticExtraTable = {
  ActivationSymmetric: flag('the range of activations is as long on both sides of 0'),
  ActivationRestrictedAsymmetric: flag('the zero of activations of QUInt8 is their least code, or that in the middle'),
  WeightSymmetric: flag('the range of weights is as long on both sides of 0; by default where they are signed', null),
  ForceQuantizeNoInputCheck: flag('operators that pass values on are quantized where what they read is not, too'),
  MatMulConstBOnly: flag('of MatMul only those whose second input is a weight'),
  AddQDQPairToWeight: flag('weights stay as they are, and the model makes their codes'),
  OpTypesToExcludeOutputQuantization: names('operators whose results have no codes'),
  DedicatedQDQPair: flag('each node that reads a value has codes of its own of it'),
  QDQOpTypePerChannelSupportToAxis: axes('the axis of the channels of weights, by operator'),
  UseQDQContribOps: flag('QuantizeLinear and DequantizeLinear are those of com.microsoft'),
  MinimumRealRange: number('shorter ranges are made so long', null, [0, 3e38]),
  QDQKeepRemovableActivations: flag('Relu and Clip stay where the range of codes does their work'),
  QDQDisableWeightAdjustForInt32Bias: flag('scales of weights stay where codes of a bias do not fit 32 bits'),
  QuantizeBias: flag('biases have codes of 32 bits', true),
} as const;
