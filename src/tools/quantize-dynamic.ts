import { typeError } from '../errors.js';
import { describe } from '../tensor/tensor-data.js';
import { dynamicExtraTable, dynamicTable } from './dynamic-options.js';
import { readOptions, type OptionsOf } from './option-table.js';
import { transform, type TransformOptions, type TransformReport } from './transform.js';

/** Options of `quantizeDynamic`; docs/quantization.md says what each means. */
export type QuantizeDynamicOptions = OptionsOf<typeof dynamicTable> &
  TransformOptions & {
    /** What the Python tool takes in `extra_options`. */
    readonly extraOptions?: OptionsOf<typeof dynamicExtraTable>;
  };

/**
 * Writes the model with weights of 8 bits, whose products are computed on codes: activations are quantized in each run, so
 * that no data is needed now. MatMul and Gemm become MatMulInteger, Conv becomes ConvInteger, and tables of Gather hold
 * codes. The file is written beside `output` and renamed; the model's own files are never touched.
 */
export async function quantizeDynamic(
  model: string | URL | Uint8Array,
  output: string | URL,
  options: QuantizeDynamicOptions = {},
): Promise<TransformReport> {
  const { extraOptions = {}, signal, onProgress, ...own } = options;
  if (typeof extraOptions !== 'object' || extraOptions === null) {
    throw typeError(
      `Invalid quantizeDynamic options: 'extraOptions' must be an object, got ${describe(extraOptions)}.`,
    );
  }
  const settings = readOptions(dynamicTable, own, 'quantizeDynamic options');
  const extra = readOptions(dynamicExtraTable, extraOptions, "'extraOptions' of quantizeDynamic");
  extra['WeightSymmetric'] ??= settings['weightType'] === 'QInt8';
  const table = { ...dynamicTable, ...dynamicExtraTable };
  return transform('quantizeDynamic', table, model, output, { ...settings, ...extra, signal, onProgress });
}
