// Products of matrices, convolutions, pools, interpolation, and what is like them.
import { arithmetic, exactly, inexact, like, NoRoom, spread } from '../builder.mjs';
import { count, floats, gapless, isFloat, largest } from '../numbers.mjs';

const n = BigInt;
const multiplied = [...floats, 'int32', 'int64', 'uint32', 'uint64'];
const usable = (v) => isFloat(v.type) || v.exact;

/** A value that sums of `k` products with another of bound `other` stay small with. */
export const factor = (g, x, k, other) =>
  isFloat(x.type) ? g.bounded(x, Math.max(0.01, largest[x.type] / (4 * (k + 1) * Math.max(other, 1)))) : x;
/** Weights of a product of `k` terms. */
export const weights = (g, type, dims, k) =>
  isFloat(type)
    ? g.fresh({
        type,
        dims,
        ...(g.chance(0.3) ? { low: -3, high: 3, integral: true } : { low: -1, high: 1, integral: false }),
        constant: g.chance(0.7),
        k,
      })
    : g.fresh({ type, dims, low: type.startsWith('u') ? 0 : -3, high: 3 });

/** Sums of products as they come out: exact where they are few whole numbers. */
export function productOf(x, w, dims, k) {
  const small = isFloat(x.type) ? Math.min(256, gapless[x.type]) : Infinity;
  const exact = x.bound <= small && w.bound <= small;
  const out = arithmetic(x.type, dims, k * x.bound * w.bound + 1, [x, w]);
  return exact ? out : inexact(x, out.bound, dims);
}

function matMul(g) {
  const a = g.take({ types: multiplied, rank: [1, 4], where: usable });
  const k = a.dims.at(-1);
  const lead = a.dims.length > 2 && g.chance(0.5) ? a.dims.slice(0, -2).map((size) => (g.chance(0.3) ? 1 : size)) : [];
  const column = g.chance(0.15);
  const dims = column ? [k] : [...lead, k, g.size()];
  const b = g.chance(0.3) ? g.take({ types: [a.type], dims, where: usable }) : weights(g, a.type, dims, k);
  const x = factor(g, a, k, b.bound);
  const front = spread(a.dims.slice(0, -2), column ? [] : dims.slice(0, -2));
  const out = [...front, ...(a.dims.length > 1 ? [a.dims.at(-2)] : []), ...(column ? [] : [dims.at(-1)])];
  return g.node('MatMul', [x, b], productOf(x, b, out, k));
}

function gemm(g) {
  const a = g.take({ types: multiplied, rank: [2, 2], where: usable });
  const [transA, transB] = [g.integer(0, 1), g.integer(0, 1)];
  const [m, k] = transA ? [a.dims[1], a.dims[0]] : a.dims;
  const columns = g.size();
  const b = weights(g, a.type, transB ? [columns, k] : [k, columns], k);
  const x = factor(g, a, k, b.bound);
  const c = g.chance(0.7)
    ? weights(g, a.type, g.pick([[columns], [1, columns], [m, 1], [], [m, columns]]), 1)
    : undefined;
  const scaled = isFloat(a.type) && g.chance(0.3);
  const given = { transA: n(transA), transB: n(transB), ...(scaled && { alpha: 0.5, beta: 0.75 }) };
  const from = productOf(x, b, [m, columns], k);
  const out =
    scaled || !isFloat(a.type) ? { ...from, integral: from.integral && !scaled, exact: from.exact && !scaled } : from;
  return g.node('Gemm', c ? [x, b, c] : [x, b], { ...out, bound: out.bound + 4 }, given);
}

const equations = [
  ['ij,jk->ik', [2, 2]],
  ['ij,kj->ik', [2, 2]],
  ['bij,bjk->bik', [3, 3]],
  ['bhid,bhjd->bhij', [4, 4]],
  ['ij->ji', [2]],
  ['ij->i', [2]],
  ['ii->i', [2]],
  ['i,j->ij', [1, 1]],
  ['...ij,...jk->...ik', [3, 3]],
  ['abc,cd', [3, 2]],
];
function einsum(g) {
  const [equation, ranks] = g.pick(equations);
  const sizes = {};
  const size = (letter) => (sizes[letter] ??= g.pick([1, 2, 3, 5, 8, 17]));
  const [left, right] = equation.split('->');
  const letters = left.split(',').map((term) => [...term.replace('...', '*')]);
  const dims = letters.map((term) => term.map(size));
  const type = g.type(floats.slice(0, g.opset < 28 ? 3 : 4));
  const [a, ...others] = ranks.map((_, i) =>
    i === 0 ? g.take({ types: [type], dims: dims[0] }) : weights(g, type, dims[i], 8),
  );
  const implied = [...letters.flat()]
    .filter((letter, _, all) => all.filter((other) => other === letter).length === 1)
    .sort();
  const out = (right === undefined ? implied : [...right.replace('...', '*')]).map(size);
  const k = Math.max(1, count(Object.values(sizes)) / Math.max(1, count(out)));
  const x = factor(g, a, k, others[0]?.bound ?? 1);
  const bound = k * x.bound * (others[0]?.bound ?? 1) + 1;
  return g.node('Einsum', [x, ...others], inexact(x, bound, out), { equation });
}

/** Sizes, kernel and the rest of a window that slides along some axes. */
export function windows(g, { dilated = true, ranks = [1, 2, 2, 2, 3] } = {}) {
  const rank = g.pick(ranks);
  const each = (make) => Array.from({ length: rank }, make);
  const kernel = each(() => g.pick([1, 2, 3, 3, 5].slice(0, rank === 3 ? 4 : 5)));
  const strides = each(() => g.pick([1, 1, 1, 2, 3]));
  const dilations = each(() => (dilated ? g.pick([1, 1, 1, 2, 3]) : 1));
  const taps = kernel.map((size, i) => (size - 1) * dilations[i] + 1);
  const sizes = taps.map((size) => size + g.integer(0, rank === 3 ? 3 : rank === 2 ? 12 : 40));
  const pads = [...taps, ...taps].map((size, i) =>
    g.chance(0.5) ? g.integer(0, Math.min(2, Math.floor((kernel[i % rank] - 1) / 1))) : 0,
  );
  const out = sizes.map((size, i) => Math.floor((size + pads[i] + pads[i + rank] - taps[i]) / strides[i]) + 1);
  const given = {
    kernel_shape: kernel.map(n),
    strides: strides.map(n),
    pads: pads.map(n),
    ...(dilated && { dilations: dilations.map(n) }),
  };
  return { rank, kernel, strides, dilations, taps, sizes, pads, out, given };
}

function conv(g) {
  const w = windows(g);
  const group = g.pick([1, 1, 1, 2, 3, 4]);
  const [inside, outside] = g.chance(0.2) ? [1, g.integer(1, 2)] : [g.pick([1, 2, 3, 8]), g.pick([1, 3, 4, 8, 16])];
  const dims = [g.integer(1, 2), group * inside, ...w.sizes];
  const k = inside * count(w.kernel);
  const type = g.type(floats);
  const kernel = weights(g, type, [group * outside, inside, ...w.kernel], k);
  const x = factor(g, g.take({ types: [type], dims }), k, kernel.bound);
  const inputs = [x, kernel, ...(g.chance(0.6) ? [weights(g, type, [group * outside], 1)] : [])];
  const given = { ...w.given, group: n(group) };
  const same = g.chance(0.15) && w.dilations.every((d) => d === 1);
  if (same) delete given.pads;
  const out = same ? w.sizes.map((size, i) => Math.ceil(size / w.strides[i])) : w.out;
  return g.node('Conv', inputs, inexact(x, k * x.bound * 3 + 3, [dims[0], group * outside, ...out]), {
    ...given,
    ...(same && { auto_pad: g.pick(['SAME_UPPER', 'SAME_LOWER']) }),
  });
}

function convTranspose(g) {
  const w = windows(g);
  const group = g.pick([1, 1, 2, 3]);
  const [inside, outside] = [g.integer(1, 4), g.integer(1, 4)];
  const sizes = w.sizes.map((size) => Math.min(size, 7));
  const extra = w.strides.map((stride) => (g.chance(0.3) ? g.integer(0, stride - 1) : 0));
  const out = sizes.map((size, i) => w.strides[i] * (size - 1) + extra[i] + w.taps[i] - w.pads[i] - w.pads[i + w.rank]);
  if (out.some((size) => size < 1)) throw new NoRoom();
  const dims = [g.integer(1, 2), group * inside, ...sizes];
  const type = g.type(floats);
  const k = inside * count(w.kernel);
  const kernel = weights(g, type, [group * inside, outside, ...w.kernel], k);
  const x = factor(g, g.take({ types: [type], dims }), k, kernel.bound);
  const inputs = [x, kernel, ...(g.chance(0.5) ? [weights(g, type, [group * outside], 1)] : [])];
  return g.node('ConvTranspose', inputs, inexact(x, k * x.bound * 3 + 3, [dims[0], group * outside, ...out]), {
    ...w.given,
    group: n(group),
    output_padding: extra.map(n),
  });
}

const pool = (op) => (g) => {
  const w = windows(g, { dilated: op !== 'LpPool' });
  const types = op === 'MaxPool' ? [...floats, 'int8', 'uint8'] : floats;
  const x = g.take({
    types,
    dims: [g.integer(1, 2), g.pick([1, 2, 3, 5, 16]), ...w.sizes],
    ...(op === 'LpPool' && { bound: 10 }),
  });
  // An average or a maximum of nothing but padding has no meaning.
  if (w.kernel.some((size, i) => w.pads[i] >= size || w.pads[i + w.rank] >= size)) throw new NoRoom();
  if (w.pads.some((size) => size > 0) && w.dilations.some((size) => size > 1)) throw new NoRoom();
  const dims = [...x.dims.slice(0, 2), ...w.out];
  if (op === 'MaxPool') {
    const places = x.exact && g.chance(0.3) ? [exactly('int64', dims, count(x.dims))] : [];
    return g.node(op, [x], [like(x, dims), ...places], w.given);
  }
  const given = op === 'AveragePool' ? { count_include_pad: n(g.integer(0, 1)) } : { p: n(g.integer(1, 2)) };
  return g.node(op, [x], inexact(x, op === 'LpPool' ? x.bound * count(w.kernel) : x.bound, dims), {
    ...w.given,
    ...given,
  });
};

const global = (op) => (g) => {
  const x = g.take({
    types: floats,
    rank: [3, 5],
    where: (v) => count(v.dims) > 0,
    bound: op === 'GlobalLpPool' ? 20 : Infinity,
  });
  if (count(x.dims) === 0) throw new NoRoom();
  const dims = [...x.dims.slice(0, 2), ...x.dims.slice(2).map(() => 1)];
  if (op === 'GlobalMaxPool') return g.node(op, [x], like(x, dims));
  const lp = op === 'GlobalLpPool';
  return g.node(
    op,
    [x],
    inexact(x, lp ? x.bound * count(x.dims.slice(2)) : x.bound, dims),
    lp ? { p: n(g.integer(1, 2)) } : {},
  );
};

function resize(g) {
  const rank = g.pick([1, 2, 2, 2, 3]);
  const sizes = Array.from({ length: rank }, () => g.pick([1, 2, 3, 5, 7, 8]));
  const mode = g.pick(rank === 2 ? ['nearest', 'linear', 'cubic'] : ['nearest', 'linear']);
  const x = g.take({ types: ['float32', 'float16', 'float64'], dims: [1, g.integer(1, 4), ...sizes] });
  // Half sizes and whole multiples: places that fall on half a pixel are the same in every precision.
  const scales = sizes.map(() => g.pick(mode === 'nearest' ? [1, 2, 3] : [1, 2, 3, 4]));
  const dims = [...x.dims.slice(0, 2), ...sizes.map((size, i) => size * scales[i])];
  const by = g.chance(0.5)
    ? [g.constant({ type: 'float32', dims: [2 + rank], data: Float32Array.of(1, 1, ...scales) })]
    : [undefined, g.longs(dims)];
  const transformation = g.pick(['half_pixel', 'asymmetric', 'align_corners', 'pytorch_half_pixel']);
  const given = { mode, coordinate_transformation_mode: mode === 'nearest' ? 'asymmetric' : transformation };
  const out = mode === 'nearest' ? like(x, dims) : inexact(x, 2 * x.bound, dims);
  return g.node('Resize', [x, undefined, ...by], out, {
    ...given,
    ...(mode === 'nearest' && { nearest_mode: 'floor' }),
  });
}

function gridSample(g) {
  const [batch, high, wide] = [g.integer(1, 2), g.integer(1, 6), g.integer(1, 6)];
  const x = g.take({ types: ['float32', 'float64'], dims: [batch, g.integer(1, 3), g.integer(1, 7), g.integer(1, 7)] });
  const grid = g.fresh({ type: x.type, dims: [batch, high, wide, 2], low: -1.2, high: 1.2, integral: false });
  return g.node('GridSample', [x, grid], inexact(x, x.bound, [...x.dims.slice(0, 2), high, wide]), {
    mode: 'linear',
    padding_mode: g.pick(['zeros', 'border', 'reflection']),
    align_corners: n(g.integer(0, 1)),
  });
}

function det(g) {
  const size = g.integer(1, 4);
  const x = g.bounded(g.take({ types: ['float32', 'float64'], dims: [...g.dims([0, 1]), size, size] }), 3);
  return g.node('Det', [x], inexact(x, x.bound ** size * 24, x.dims.slice(0, -2)));
}

function col2im(g) {
  const [channels, blocks] = [g.integer(1, 3), [g.integer(1, 2), g.integer(1, 3)]];
  const image = blocks.map((size) => size + g.integer(0, 4));
  const steps = count(image.map((size, i) => size - blocks[i] + 1));
  const x = g.take({ types: floats, dims: [g.integer(1, 2), channels * count(blocks), steps], bound: 40 });
  const out = inexact(x, x.bound * count(blocks), [x.dims[0], channels, ...image]);
  return g.node('Col2Im', [x, g.longs(image), g.longs(blocks)], out);
}

export const products = {
  MatMul: matMul,
  Gemm: gemm,
  Einsum: einsum,
  Conv: conv,
  ConvTranspose: convTranspose,
  MaxPool: pool('MaxPool'),
  AveragePool: pool('AveragePool'),
  LpPool: pool('LpPool'),
  GlobalAveragePool: global('GlobalAveragePool'),
  GlobalMaxPool: global('GlobalMaxPool'),
  GlobalLpPool: global('GlobalLpPool'),
  Resize: resize,
  GridSample: { since: 20, make: gridSample },
  Det: det,
  Col2Im: col2im,
};
