// The entry point `infernode/quantization`.
export { quantizeDynamic, type QuantizeDynamicOptions } from './tools/quantize-dynamic.js';
export { quantizeWeights, type QuantizeWeightsOptions } from './tools/quantize-weights.js';
export type { NodeOutcome, TransformOptions, TransformReport } from './tools/transform.js';
