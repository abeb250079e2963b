// The entry point `infernode/quantization`.
export type { CalibrationData, CalibrationFeeds } from './tools/calibration/calibrate.js';
export { quantizeDynamic, type QuantizeDynamicOptions } from './tools/quantize-dynamic.js';
export { quantizeStatic, type QuantizeStaticOptions } from './tools/quantize-static.js';
export { quantizeWeights, type QuantizeWeightsOptions } from './tools/quantize-weights.js';
export type { NodeOutcome, TransformOptions, TransformReport } from './tools/transform.js';
