import type { OptionsOf } from './option-table.js';
import { transform, type TransformOptions, type TransformReport } from './transform.js';
import { weightsTable } from './weights-options.js';

/** Options of `quantizeWeights`; docs/quantization.md says what each means. */
export type QuantizeWeightsOptions = OptionsOf<typeof weightsTable> & TransformOptions;

/**
 * Writes the model with the weights of its products in codes of 4 or 8 bits, rounded to nearest in blocks that have a
 * scale each: MatMul and Gemm become MatMulNBits, Gather becomes GatherBlockQuantized where it is asked for. The file is
 * written beside `output` and renamed; the model's own files are never touched.
 */
export function quantizeWeights(
  model: string | URL | Uint8Array,
  output: string | URL,
  options: QuantizeWeightsOptions = {},
): Promise<TransformReport> {
  return transform('quantizeWeights', weightsTable, model, output, options);
}
