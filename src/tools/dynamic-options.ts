import { choice, flag, names } from './option-table.js';

/** The options of `quantizeDynamic`: names and defaults are those of `onnxruntime.quantization.quantize_dynamic`. */
export const dynamicTable = {
  opTypesToQuantize: names<'MatMul' | 'Gemm' | 'Conv' | 'Gather'>(
    'operators that are quantized; Gather is for tables of embeddings',
    ['MatMul', 'Gemm', 'Conv', 'Gather'],
    ['MatMul', 'Gemm', 'Conv', 'Gather'],
  ),
  perChannel: flag('weights of products have a scale for each column'),
  reduceRange: flag('weights have 7 bits, for CPUs with AVX2 or AVX512 and without VNNI'),
  weightType: choice(['QInt8', 'QUInt8'], 'QInt8', 'the type of weights'),
  nodesToQuantize: names('where any are named, others stay as they are'),
  nodesToExclude: names('nodes that stay as they are'),
  useExternalDataFormat: flag(
    'large tensors go into a file beside the model, which a model over 2 GB does in any case',
  ),
} as const;

/** Its `extra_options` that apply, by their names there. */
export const dynamicExtraTable = {
  EnableSubgraph: flag('nodes in the bodies of If, Loop and Scan are quantized, too'),
  MatMulConstBOnly: flag('of MatMul only those whose second input is a weight', true),
  WeightSymmetric: flag('the range of weights is as long on both sides of 0; by default where they are QInt8', null),
} as const;
