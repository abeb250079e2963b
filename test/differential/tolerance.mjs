// How far two right engines may lie apart in each value of a graph: rounding, from what was computed once.
//
// Every value has an absolute error, which follows from the errors of a node's inputs, the magnitudes of what it reads and
// gives, and the type's unit of rounding. Values that are exact by their nature have the error 0.
import { count, decode, isFloat, smallest, unit } from './numbers.mjs';

const measured = new WeakMap();

/** Largest and least magnitude of the finite elements, and the dims; looked at once. */
function measure(value) {
  if (!value) return measureAnew(value);
  if (!measured.has(value)) measured.set(value, measureAnew(value));
  return measured.get(value);
}

function measureAnew(value) {
  if (!value || Array.isArray(value)) {
    const items = (value ?? []).map(measure);
    return {
      type: items[0]?.type,
      most: Math.max(0, ...items.map(({ most }) => most)),
      least: 0,
      dims: items[0]?.dims ?? [],
    };
  }
  const { type, dims } = value;
  let [most, least] = [0, Infinity];
  if (type !== 'string') {
    for (const each of decode(value)) {
      const size = Math.abs(Number(each));
      if (!Number.isFinite(size)) continue;
      if (size > most) most = size;
      if (size < least) least = size;
    }
  }
  return { type, dims, most, least };
}

const sum = (list, f) => list.reduce((all, item) => all + f(item), 0);
const total = (inputs) => sum(inputs, ({ error }) => error);
const gain =
  (factor) =>
  ({ inputs }) =>
    factor * total(inputs);

/** Sums of `k` products. */
function product(k, a, b, u) {
  return k * (a.most * b.error + b.most * a.error + a.error * b.error + u * a.most * b.most);
}
const reduced = ([x], out) => Math.max(1, count(x.dims) / Math.max(1, count(out.dims)));
/** A sum rounds with each term it takes in, by the size it then has: at random where terms are added one after another. */
const summed = ({ inputs, outs: [y], u }) =>
  reduced(inputs, y) * (inputs[0].error + u * inputs[0].most) + 4 * Math.sqrt(reduced(inputs, y)) * u * y.most;
const last = ({ dims }) => dims.at(-1) ?? 1;

const matrix = ({ inputs: [a, b, c], u }) => product(Math.max(last(a), a.dims.at(-2) ?? 1), a, b, u) + (c?.error ?? 0);
const convolution = ({ inputs: [x, w, b], u }) =>
  // Transforms of tiles add and subtract before they multiply.
  8 * product(count(w.dims) / Math.max(1, Math.min(w.dims[0], w.dims[1])), x, w, u) +
  (b?.error ?? 0) +
  u * (b?.most ?? 0);
/** What divides by a deviation of at least the square root of epsilon, 0.05; the standard lets its first stage be float32. */
const normalization = ({ inputs: [x, ...rest], u: own, outs }, u = Math.max(own, unit.float32)) =>
  10 * (x.error + u * x.most) * Math.max(1, ...rest.map(({ most }) => most)) + total(rest) + 8 * u * outs[0].most;
const stepwise = ({ inputs, u, outs }) =>
  4 * (1 + (inputs[0].dims[0] ?? 1)) * (total(inputs) + u * (1 + outs[0].most + inputs[0].most));

/** Results of operators on codes: a step of the result, and what the inputs' steps make of it. */
const onCodes =
  (list) =>
  ({ inputs }) => {
    const steps = ([value, scale, out, k]) =>
      inputs[value].error * (inputs[scale].most / inputs[out].least) * k(inputs);
    return 1 + Math.ceil(sum(list, steps));
  };
const one = () => 1;

/** Functions that are products of their input, which cancel where it is far below 0. */
const gated = ({ inputs, u }) => 2 * total(inputs) + 4 * u * sum(inputs, ({ most }) => most);

/** Sums of cosines, some of which cancel. */
const absolute = ({ u }) => 4 * u;

const rules = {
  ...Object.fromEntries(
    ['Gelu', 'QuickGelu', 'FastGelu', 'BiasGelu', 'Mish', 'Swish', 'HardSwish', 'Elu', 'Celu', 'Selu'].map((op) => [
      op,
      gated,
    ]),
  ),
  Mul: ({ inputs: [a, b] }) => a.error * b.most + b.error * a.most + a.error * b.error,
  Div: ({ inputs: [a, b], outs: [y] }) => (a.error + y.most * b.error) / Math.max(1e-3, b.least - b.error),
  Reciprocal: ({ inputs: [x] }) => x.error / Math.max(1e-3, x.least) ** 2,
  Log: ({ inputs: [x] }) => x.error / Math.max(1e-3, x.least),
  Exp: ({ inputs: [x], outs: [y] }) => 2 * x.error * (y.most + 1),
  Sinh: ({ inputs: [x], outs: [y] }) => 2 * x.error * (y.most + 1),
  Cosh: ({ inputs: [x], outs: [y] }) => 2 * x.error * (y.most + 1),
  Pow: ({ inputs: [x, p], outs: [y], u }) =>
    (x.error * (p.most + 1) * (y.most + 1)) / Math.max(0.25, Math.min(1, x.least)) +
    y.most * p.error * 4 +
    8 * u * y.most,
  Sigmoid: ({ inputs: [x], u }) => x.error + 4 * u,
  Sin: gated,
  Cos: gated,
  BlackmanWindow: absolute,
  HammingWindow: absolute,
  HannWindow: absolute,
  Tan: gain(5),
  Acos: gain(4),
  Asin: gain(4),
  Atanh: gain(8),
  Acosh: ({ inputs: [x] }) => 4 * x.error + Math.sqrt(2 * x.error), // steep at 1
  PRelu: ({ inputs: [x, s] }) => x.error * Math.max(1, s.most) + s.error * x.most,
  MatMul: matrix,
  Gemm: matrix,
  FusedMatMul: matrix,
  FusedGemm: matrix,
  MatMulNBits: ({ inputs: [a, , s], u }) => product(last(a), a, { most: 8 * s.most, error: 0 }, u),
  Einsum: ({ inputs: [a, b], u }) =>
    b ? product(Math.max(...a.dims, 1), a, b, u) : product(Math.max(...a.dims, 1), a, { most: 1, error: 0 }, u),
  Conv: convolution,
  ConvTranspose: convolution,
  Det: ({ inputs: [x], u }) => 24 * last(x) * (x.error + u * x.most) * Math.max(1, x.most) ** Math.max(0, last(x) - 1),
  ReduceSum: summed,
  ReduceL1: summed,
  ReduceMean: ({ inputs: [x], u }) => x.error + 4 * u * x.most,
  ReduceL2: ({ inputs, outs: [y], u }) => Math.sqrt(reduced(inputs, y)) * (inputs[0].error + 4 * u * inputs[0].most),
  ReduceSumSquare: ({ inputs, outs: [y], u }) =>
    reduced(inputs, y) * inputs[0].most * (2 * inputs[0].error + 2 * u * inputs[0].most),
  ReduceProd: ({ inputs, outs: [y], u }) => reduced(inputs, y) * (inputs[0].error + 2 * u),
  ReduceLogSum: ({ inputs: [x], outs: [y], u }) => x.error / Math.max(1e-3, x.least) + 8 * u * (1 + y.most),
  ReduceLogSumExp: ({ inputs: [x], outs: [y], u }) => x.error + 8 * u * (1 + y.most + x.most),
  CumSum: ({ inputs: [x], u }) => Math.max(1, ...x.dims) * (x.error + u * x.most),
  CumProd: ({ inputs: [x], outs: [y], u }) => Math.max(1, ...x.dims) * Math.max(1, y.most) * (x.error + 2 * u),
  GlobalLpPool: ({ inputs, outs: [y], u }) => reduced(inputs, y) * (inputs[0].error + 4 * u * inputs[0].most),
  LpPool: ({ inputs: [x], outs: [y], u }) => 30 * (x.error + u * (x.most + y.most)),
  AveragePool: ({ inputs: [x], u }) => x.error + 8 * u * x.most,
  GlobalAveragePool: ({ inputs: [x], u }) => x.error + 8 * u * x.most,
  Mean: ({ inputs, u }) => total(inputs) + 4 * u * sum(inputs, ({ most }) => most),
  Sum: ({ inputs, u }) => total(inputs) + 4 * u * sum(inputs, ({ most }) => most),
  Col2Im: ({ inputs: [x], u }) => 6 * (x.error + u * x.most),
  Resize: ({ inputs: [x], u }) => 3 * x.error + 32 * (u + 2 ** -24) * x.most,
  GridSample: ({ inputs: [x, grid], u }) => 4 * x.error + 64 * (u + grid.error) * x.most,
  LayerNormalization: normalization,
  RMSNormalization: normalization,
  GroupNormalization: normalization,
  InstanceNormalization: normalization,
  MeanVarianceNormalization: normalization,
  SkipLayerNormalization: (c) => normalization({ ...c, inputs: [added(c), ...c.inputs.slice(2)] }),
  SkipSimplifiedLayerNormalization: (c) => normalization({ ...c, inputs: [added(c), ...c.inputs.slice(2)] }),
  BatchNormalization: ({ inputs: [x, s], u }) => 2 * s.most * (x.error + 4 * u * (x.most + 1)) * 2,
  LpNormalization: ({ inputs: [x], u }) => (2 * x.error) / Math.max(1, x.least) + 16 * u,
  LRN: gain(2),
  Softmax: ({ inputs: [x], u }) => 2 * x.error + 4 * u * x.most,
  LogSoftmax: ({ inputs: [x], u }) => 3 * x.error + 8 * u * (1 + x.most),
  Attention: attended,
  MultiHeadAttention: attended,
  AffineGrid: ({ inputs: [x], u }) => 3 * x.error + 16 * (u + 2 ** -24) * x.most,
  DFT: ({ inputs: [x], u }) => 16 * (x.dims[1] ?? 1) * (x.error + u * x.most),
  STFT: ({ inputs: [x, , w], u }) => 8 * (w.dims[0] ?? 1) * (x.error + u * x.most),
  RoiAlign: ({ inputs: [x], u }) => 4 * x.error + 64 * u * x.most,
  DeformConv: convolution,
  MelWeightMatrix: () => 1e-4,
  NegativeLogLikelihoodLoss: losses,
  SoftmaxCrossEntropyLoss: losses,
  RotaryEmbedding: gain(4),
  RNN: stepwise,
  GRU: stepwise,
  LSTM: stepwise,
  Loop: ({ inputs, u, outs }) => 32 * (total(inputs) + u * outs[0].most),
  If: ({ inputs, around, u, outs }) => 16 * (total(inputs) + around + 4 * u * outs[0].most),
  Scan: stepwise,
  QuantizeLinear: ({ inputs: [x, s] }) => (x.error ? Math.ceil(x.error / s.least) + 1 : 0),
  DequantizeLinear: ({ inputs: [x, s] }) => x.error * s.most,
  DynamicQuantizeLinear: ({ inputs: [x], u }) => [1, x.error / 128 + 4 * u * x.most, 1],
  QLinearMatMul: onCodes([
    [0, 1, 6, ([a]) => 255 * last(a)],
    [3, 4, 6, ([a]) => 255 * last(a)],
  ]),
  QLinearConv: onCodes([[0, 1, 6, (i) => 128 * count(i[3].dims)]]),
  QLinearAdd: onCodes([
    [0, 1, 6, one],
    [3, 4, 6, one],
  ]),
  QLinearMul: onCodes([
    [0, 1, 6, () => 8],
    [3, 4, 6, () => 8],
  ]),
};
function attended({ inputs: [q, k, v], u }) {
  return 2 * v.error + 4 * v.most * last(q) * (q.error * k.most + k.error * q.most + u * (1 + q.most * k.most));
}
function losses({ inputs: [x, , w], outs: [y], u }) {
  return 4 * (x.dims[0] ?? 1) * Math.max(1, w?.most ?? 1) * (x.error + u * (1 + x.most + y.most));
}
function added({ inputs: [x, skip] }) {
  return { ...x, error: x.error + skip.error, most: x.most + skip.most };
}

/** Nodes whose results are rounded, if at all, only where their inputs are. */
const copies = new Set(
  `Identity Transpose Reshape Flatten Squeeze Unsqueeze Expand Tile Slice Gather GatherElements GatherND ScatterND ScatterElements
  Concat Split Pad DepthToSpace SpaceToDepth ReverseSequence Trilu CenterCropPad Compress Max Min Abs Neg Relu Clip Where MaxPool
  GlobalMaxPool ReduceMax ReduceMin Dropout SequenceConstruct SequenceAt SequenceInsert SequenceErase ConcatFromSequence
  SplitToSequence TopK MaxRoiPool MaxUnpool TensorScatter Optional OptionalGetElement Floor Ceil Round Sign`.split(
    /\s+/,
  ),
);

/**
 * @param {object} graph
 * @param {Record<string, object>} known plain values by name: feeds and what every node gave
 * @param {(type: string) => number} [units] of rounding
 * @returns {Record<string, number>} by value's name
 */
export function tolerances(graph, known, units = (type) => unit[type]) {
  const facts = {};
  for (const value of [...graph.initializers, ...graph.inputs]) {
    facts[value.name] = { ...measure(known[value.name] ?? value), error: 0 };
  }
  const coarse = graph.nodes.some(({ op }) => op === 'DequantizeLinear');
  for (const { op, inputs, outputs, attributes = {} } of graph.nodes) {
    const read = inputs.map((name) => facts[name] ?? { most: 0, least: 0, error: 0, dims: [] });
    const outs = outputs.map((name) => measure(name === '' ? undefined : (known[name] ?? attributes.value)));
    const type = outs[0].type;
    const [narrow] = [type, ...read.map((each) => each.type)].filter(isFloat).sort((a, b) => units(b) - units(a));
    let u = narrow ? units(narrow) : 0;
    // Beside codes, level basic rounds float weights to codes.
    if (coarse && rules[op] && [matrix, convolution].includes(rules[op])) u = Math.max(u, 2 ** -7);
    const around = op === 'If' ? Math.max(0, ...Object.values(facts).map(({ error }) => error)) : 0;
    const follow = rules[op] ?? gain(copies.has(op) ? 1 : 2);
    const errors = op === 'Constant' ? 0 : follow({ inputs: read, outs, u, around });
    outputs.forEach((name, i) => {
      const error = Array.isArray(errors) ? errors[i] : errors;
      const rounding =
        copies.has(op) || op === 'Constant' || !isFloat(outs[i].type)
          ? 0
          : 4 * units(outs[i].type) * outs[i].most + smallest[outs[i].type];
      const inexact = isFloat(outs[i].type) || error > 0;
      const discrete =
        ['IsNaN', 'IsInf', 'Shape', 'Size', 'SequenceLength', 'OptionalHasElement'].includes(op) ||
        ['bool', 'string'].includes(outs[i].type);
      facts[name] = { ...outs[i], error: inexact && !discrete ? error + rounding : 0 };
    });
  }
  return Object.fromEntries(Object.entries(facts).map(([name, { error }]) => [name, error]));
}
