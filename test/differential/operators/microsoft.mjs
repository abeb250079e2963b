// What exporters and optimizers write of com.microsoft.
import { inexact, spread } from '../builder.mjs';
import { count, encode } from '../numbers.mjs';
import { factor, weights } from './products.mjs';
import { factors, summands } from './reductions.mjs';

const n = BigInt;
const types = ['float32', 'float16'];
const node = (g, op, inputs, out, given) => g.node(op, inputs, out, given, 'com.microsoft');

const unary = (op) => (g) => {
  const x = g.take({ types });
  return node(g, op, [x], inexact(x, x.bound), op === 'QuickGelu' ? { alpha: 1.702 } : {});
};
const biased = (op) => (g) => {
  const x = g.take({ types, rank: [1, 4] });
  return node(g, op, [x, summands(g, x.type, [x.dims.at(-1)])], inexact(x, x.bound + 1));
};

function biasSoftmax(g) {
  const x = g.take({ types: ['float32'], rank: [2, 4] });
  const axis = n(g.integer(1, x.dims.length - 1));
  const bias = summands(g, x.type, [x.dims.at(-1)]);
  return node(g, 'BiasSoftmax', [x, bias], inexact(x, 1), { axis, is_inner_broadcast: 0n });
}

function fusedMatMul(g) {
  const a = g.take({ types, rank: [2, 3] });
  const [transA, transB] = [g.integer(0, 1), g.integer(0, 1)];
  const [m, k] = transA ? [a.dims.at(-1), a.dims.at(-2)] : [a.dims.at(-2), a.dims.at(-1)];
  const columns = g.size();
  const lead = a.dims.slice(0, -2);
  const b = weights(g, a.type, [...lead, ...(transB ? [columns, k] : [k, columns])], k);
  const x = factor(g, a, k, b.bound);
  const out = inexact(x, k * x.bound * b.bound + 1, [...spread(lead), m, columns]);
  return node(g, 'FusedMatMul', [x, b], out, { transA: n(transA), transB: n(transB), alpha: g.pick([1, 0.5]) });
}

function fusedGemm(g) {
  const a = g.take({ types: ['float32'], rank: [2, 2] });
  const columns = g.size();
  const b = weights(g, a.type, [a.dims[1], columns], a.dims[1]);
  const x = factor(g, a, a.dims[1], b.bound);
  const out = inexact(x, a.dims[1] * x.bound * b.bound + 4, [a.dims[0], columns]);
  return node(g, 'FusedGemm', [x, b, weights(g, a.type, [columns], 1)], out, {
    activation: g.pick(['Relu', 'Tanh', 'Sigmoid']),
  });
}

const skipped = (op) => (g) => {
  const x = g.bounded(g.take({ types, rank: [3, 3], where: (v) => count(v.dims) > 0 }), 20);
  const skip = g.bounded(g.take({ types: [x.type], dims: x.dims }), 20);
  const dims = [x.dims[2]];
  const simple = op.includes('Simplified');
  const inputs = [x, skip, factors(g, x.type, dims), ...(simple ? [] : [summands(g, x.type, dims)])];
  if (g.chance(0.4)) inputs.push(summands(g, x.type, dims));
  return node(g, op, inputs, inexact(x, 60), { epsilon: 0.05 });
};

function attention(g) {
  const [batch, steps, past, heads, size] = [
    g.integer(1, 2),
    g.pick([1, 3, 5, 17]),
    g.pick([1, 4, 7]),
    g.pick([1, 2, 3]),
    g.pick([1, 4, 8]),
  ];
  const x = (of) => g.bounded(g.take({ types: ['float32'], dims: [batch, of, heads * size] }), 4);
  const [q, k, v] = [x(steps), x(past), x(past)];
  return node(g, 'MultiHeadAttention', [q, k, v], inexact(v, v.bound, q.dims), { num_heads: n(heads) });
}

function matMulNBits(g) {
  const [k, columns, block] = [g.pick([16, 32, 48]), g.pick([1, 5, 16]), 16];
  const blocks = Math.ceil(k / block);
  const data = Uint8Array.from({ length: columns * blocks * (block / 2) }, () => g.integer(0, 255));
  const b = g.constant({ type: 'uint8', dims: [columns, blocks, block / 2], data, bound: 255 });
  const s = g.constant({
    type: 'float32',
    dims: [columns * blocks],
    data: encode(
      'float32',
      Array.from({ length: columns * blocks }, () => 2 ** g.integer(-6, -3)),
    ),
    integral: false,
  });
  const x = g.bounded(g.take({ types: ['float32'], dims: [g.integer(1, 4), k] }), 20);
  return node(g, 'MatMulNBits', [x, b, s], inexact(x, k * x.bound, [x.dims[0], columns]), {
    K: n(k),
    N: n(columns),
    bits: 4n,
    block_size: n(block),
  });
}

/** Sums and products of codes. */
const onCodes = (op) => (g) => {
  const type = g.pick(['uint8', 'int8']);
  const codes = { type, low: type === 'uint8' ? 0 : -128, high: type === 'uint8' ? 255 : 127 };
  const a = g.take({ types: [type], rank: [1, 4], ...codes });
  const b = g.take({ types: [type], dims: a.dims, ...codes });
  const of = (power) => [g.scalar('float32', 2 ** power), g.scalar(type, g.integer(0, 5))];
  const out = { type, dims: a.dims, exact: false, integral: true, bound: 255 };
  return node(g, op, [a, ...of(-5), b, ...of(-5), ...of(op === 'QLinearMul' ? -4 : -4)], out);
};

function rotary(g) {
  const [batch, heads, steps, size] = [g.integer(1, 2), g.integer(1, 3), g.integer(1, 5), g.pick([2, 4, 8])];
  const x = g.take({ types: ['float32'], dims: [batch, heads, steps, size] });
  const table = () => g.fresh({ type: 'float32', dims: [8, size / 2], low: -1, high: 1, integral: false });
  const from = g.constant({
    type: 'int64',
    dims: [1],
    data: encode('int64', [g.integer(0, 3)]),
    constant: g.chance(0.5),
    bound: 8,
  });
  return node(g, 'RotaryEmbedding', [x, from, table(), table()], inexact(x, 2 * x.bound), {
    interleaved: n(g.integer(0, 1)),
  });
}

export const microsoft = {
  'com.microsoft.Gelu': unary('Gelu'),
  'com.microsoft.QuickGelu': unary('QuickGelu'),
  'com.microsoft.BiasGelu': biased('BiasGelu'),
  'com.microsoft.FastGelu': biased('FastGelu'),
  'com.microsoft.BiasSoftmax': biasSoftmax,
  'com.microsoft.FusedMatMul': fusedMatMul,
  'com.microsoft.FusedGemm': fusedGemm,
  'com.microsoft.SkipLayerNormalization': skipped('SkipLayerNormalization'),
  'com.microsoft.SkipSimplifiedLayerNormalization': skipped('SkipSimplifiedLayerNormalization'),
  'com.microsoft.MultiHeadAttention': attention,
  'com.microsoft.MatMulNBits': matMulNBits,
  'com.microsoft.QLinearAdd': onCodes('QLinearAdd'),
  'com.microsoft.QLinearMul': onCodes('QLinearMul'),
  'com.microsoft.RotaryEmbedding': rotary,
};
