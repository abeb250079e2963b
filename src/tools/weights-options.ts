import { choice, flag, names } from './option-table.js';

/** The options of `quantizeWeights`: names and defaults are those of onnxruntime's MatMulNBitsQuantizer. */
export const weightsTable = {
  bits: choice([4, 8], 4, 'bits of a code'),
  blockSize: choice([16, 32, 64, 128, 256], 128, 'weights that share a scale'),
  isSymmetric: flag('codes have their zero in the middle of their range, and no zero points are stored'),
  accuracyLevel: choice([0, 1, 2, 3, 4], 0, 'the type that runtimes may compute products in: 1 float32, 2 float16, 3 bfloat16, 4 int8; 0 leaves it to them'), // prettier-ignore
  opTypesToQuantize: names<'MatMul' | 'Gemm' | 'Gather'>(
    'operators whose weights are quantized; Gather is for tables of embeddings',
    ['MatMul', 'Gemm'],
    ['MatMul', 'Gemm', 'Gather'],
  ),
  nodesToExclude: names('nodes that stay as they are'),
  nodesToInclude: names('where any are named, others stay as they are'),
  useExternalDataFormat: flag(
    'large tensors go into a file beside the model, which a model over 2 GB does in any case',
  ),
} as const;
