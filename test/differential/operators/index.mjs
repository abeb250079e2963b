// All operators that graphs are drawn from, by name: `since` says from which version of ai.onnx on, `make(builder)` adds one.
import { composite } from './composite.mjs';
import { elementwise } from './elementwise.mjs';
import { microsoft } from './microsoft.mjs';
import { movement } from './movement.mjs';
import { others } from './others.mjs';
import { patterns } from './patterns.mjs';
import { products } from './products.mjs';
import { quantized } from './quantized.mjs';
import { reductions } from './reductions.mjs';
import { units } from './units.mjs';

const families = {
  ...elementwise,
  ...movement,
  ...reductions,
  ...products,
  ...quantized,
  ...composite,
  ...others,
  ...microsoft,
};

/** @type {Record<string, { since: number, make: (g: import('../builder.mjs').Builder) => unknown }>} */
export const operators = Object.fromEntries(
  Object.entries(families).map(([name, entry]) => [
    name,
    typeof entry === 'function' ? { since: 1, make: entry } : entry,
  ]),
);

/** What adds several nodes at once, as models have them. */
export const groups = Object.values({ ...patterns, ...units });

/** Those whose answer the standard defines where NaN or infinities go in. */
export const definedForSpecial = new Set(
  `Abs Neg Relu Identity Add Sub Mul Div Sum Mean Where Concat Reshape Transpose Slice Gather Squeeze Unsqueeze Expand
  Tile Split Sigmoid Tanh Erf Softmax LogSoftmax ReduceSum ReduceMean MatMul Gemm Conv LeakyRelu IsNaN IsInf Equal Less Greater
  GlobalAveragePool AveragePool Softsign Exp Flatten GatherElements ScatterND ScatterElements Pad If Loop Trilu Max Min`.split(
    /\s+/,
  ),
);
