// Groups of nodes as exporters write them, which the optimizer looks for, and near misses of them.
import { exactly, inexact, like, NoRoom } from '../builder.mjs';
import { count, encode, isFloat } from '../numbers.mjs';
import { elementType } from './elementwise.mjs';
import { regroup } from './movement.mjs';
import { factor, weights } from './products.mjs';
import { factors, summands } from './reductions.mjs';

const n = BigInt;
const types = ['float32', 'float32', 'float16', 'float64', 'bfloat16'];
const source = (g, more) => g.take({ types, ...more });
const swap = (g, a, b) => (g.chance(0.5) ? [a, b] : [b, a]);
/** A number that a pattern asks for, or now and then another. */
const near = (g, x, number) => g.scalar(x.type, g.chance(0.12) ? number + 0.25 : number, g.pick([[], [], [1]]));
const same = (x, bound) => inexact(x, bound);
const node = (g, op, inputs, bound, given) => g.node(op, inputs, same(inputs[0], bound), given);
const times = (g, a, b, bound) => g.node('Mul', swap(g, a, b), same(a.dims.length ? a : b, bound));

function gelu(g) {
  const x = g.bounded(source(g, { rank: [1, 4] }), 8);
  const half = (y, bound) => times(g, y, near(g, x, 0.5), bound);
  if (g.chance(0.5)) {
    const scaled = g.chance(0.5)
      ? node(g, 'Div', [x, near(g, x, Math.SQRT2)], 6)
      : times(g, x, near(g, x, Math.SQRT1_2), 6);
    const one = g.node('Add', swap(g, node(g, 'Erf', [scaled], 1), near(g, x, 1)), same(x, 2.3));
    return g.chance(0.5) ? times(g, half(x, 6), one, 16) : half(times(g, x, one, 20), 12);
  }
  const cube = g.node('Pow', [x, g.scalar(x.type, 3)], same(x, 512));
  if (cube.bound > 400 && x.type === 'float16') throw new NoRoom();
  const inner = g.node('Add', swap(g, x, times(g, cube, near(g, x, 0.044715), 160)), same(x, 170));
  const tanh = node(g, 'Tanh', [times(g, inner, near(g, x, 0.7978845608), 180)], 1);
  return half(times(g, x, g.node('Add', swap(g, tanh, near(g, x, 1)), same(x, 2.3)), 20), 12);
}

function gated(g) {
  const x = g.bounded(source(g, { rank: [1, 4] }), 20);
  const kind = g.integer(0, 3);
  if (kind === 0) return times(g, x, node(g, 'Sigmoid', [x], 1), 20);
  if (kind === 1) return times(g, x, node(g, 'Sigmoid', [times(g, x, near(g, x, 1.702), 40)], 1), 20);
  if (kind === 2) return times(g, x, node(g, 'Tanh', [node(g, 'Softplus', [x], 21)], 1), 20);
  const three = g.node('Add', swap(g, x, near(g, x, 3)), same(x, 24));
  const clipped = g.node('Clip', [three, near(g, x, 0), near(g, x, 6)], same(x, 7));
  if (g.chance(0.5)) return node(g, 'Div', [times(g, x, clipped, 140), near(g, x, 6)], 30);
  return times(g, x, node(g, 'Div', [clipped, near(g, x, 6)], 2), 40);
}

function layerNorm(g) {
  const x = g.bounded(source(g, { rank: [1, 4], where: (v) => count(v.dims) > 0 }), 15);
  const last = x.dims.at(-1);
  if (!last || count(x.dims) === 0) throw new NoRoom();
  const mean = (y, bound) => {
    const out = inexact(y, bound, [...y.dims.slice(0, -1), 1]);
    return g.node('ReduceMean', [y, g.longs([g.pick([-1, y.dims.length - 1])])], out, { keepdims: 1n });
  };
  const simple = g.chance(0.4);
  const middle = simple ? x : g.node('Sub', [x, mean(x, x.bound)], same(x, 2 * x.bound));
  const square = g.chance(0.5)
    ? g.node('Pow', [middle, g.scalar(g.pick([x.type, 'float32']), 2)], same(x, 900))
    : g.node('Mul', [middle, middle], same(x, 900));
  if (x.type === 'float16' && middle.bound > 20) throw new NoRoom();
  const variance = mean(square, 900);
  const root = g.node(
    'Sqrt',
    [g.node('Add', swap(g, variance, g.scalar(x.type, 0.0625)), inexact(variance, 901))],
    inexact(variance, 31),
  );
  const normal = g.node('Div', [middle, root], same(x, 20));
  const scaled = times(g, normal, factors(g, x.type, [last]), 30);
  return g.chance(0.7) ? g.node('Add', swap(g, scaled, summands(g, x.type, [last])), same(x, 31)) : scaled;
}

const activations = [
  'Relu',
  'Sigmoid',
  'Tanh',
  'LeakyRelu',
  'HardSigmoid',
  'HardSwish',
  'Elu',
  'Softplus',
  'Gelu',
  'Mish',
];
function activate(g, x) {
  const kind = g.integer(0, 5);
  if (kind === 0) return x;
  if (kind === 1) return g.node('Clip', [x, g.scalar(x.type, 0), g.scalar(x.type, 6)], same(x, 6));
  if (kind === 2) return times(g, x, node(g, 'Sigmoid', [x], 1), x.bound);
  return node(g, kind === 3 ? 'Relu' : g.pick(activations), [x], x.bound + 1);
}

/** A convolution of images with what often stands around it. */
function convolve(g, x, outputs, { kernel, stride = 1, groups = 1 }) {
  const [batch, channels, high, wide] = x.dims;
  const pad = kernel >> 1;
  const k = (channels / groups) * kernel * kernel;
  const w = weights(g, x.type, [outputs, channels / groups, kernel, kernel], k);
  const small = factor(g, x, k, w.bound);
  const size = (length) => Math.floor((length + 2 * pad - kernel) / stride) + 1;
  const apart = g.chance(0.1) && pad > 0;
  const pads = g.longs([0, 0, pad, pad, 0, 0, pad, pad]);
  const wider = [batch, channels, high + 2 * pad, wide + 2 * pad];
  const padded = apart ? g.node('Pad', [small, pads], like(small, wider)) : small;
  const bias = g.chance(0.6) ? [summands(g, x.type, [outputs])] : [];
  const out = inexact(x, Math.max(1, k * small.bound * w.bound) + 1, [batch, outputs, size(high), size(wide)]);
  return g.node('Conv', [padded, w, ...bias], out, {
    kernel_shape: [n(kernel), n(kernel)],
    strides: [n(stride), n(stride)],
    group: n(groups),
    ...(!apart && { pads: [n(pad), n(pad), n(pad), n(pad)] }),
  });
}

function convChain(g) {
  const type = g.pick(['float32', 'float32', 'float16', 'float64']);
  const channels = () => g.pick([3, 8, 16, 16, 24, 32]);
  let x = g.take({ types: [type], dims: [g.integer(1, 2), channels(), g.pick([1, 5, 8, 12]), g.pick([2, 7, 8, 16])] });
  for (let i = g.integer(1, 4); i > 0; i--) {
    const depthwise = g.chance(0.25);
    const outputs = depthwise ? x.dims[1] : channels();
    const before = x;
    x = convolve(g, x, outputs, {
      kernel: g.pick([1, 1, 3, 3, 5]),
      stride: g.pick([1, 1, 1, 2]),
      groups: depthwise ? outputs : 1,
    });
    const each = [outputs, 1, 1];
    const after = g.integer(0, 4);
    if (after === 0) x = times(g, x, factors(g, type, each), 2 * x.bound);
    if (after === 1) x = g.node('Add', swap(g, x, summands(g, type, each)), same(x, x.bound + 1));
    if (after === 2) {
      const norm = [factors, summands, summands, factors].map((make) => make(g, type, [outputs]));
      x = g.node('BatchNormalization', [x, ...norm], same(x, 3 * x.bound + 3), { epsilon: 0.05 });
    }
    x = activate(g, x);
    if (String(before.dims) === String(x.dims) && g.chance(0.6)) {
      x = g.node('Add', swap(g, before, x), same(x, x.bound + before.bound));
      if (g.chance(0.5)) x = activate(g, x);
    }
    if (g.chance(0.2))
      x = g.node('Concat', [x, x], { ...like(x, [x.dims[0], 2 * x.dims[1], ...x.dims.slice(2)]) }, { axis: 1n });
  }
  if (g.chance(0.5)) return g.node('GlobalAveragePool', [x], inexact(x, x.bound, [...x.dims.slice(0, 2), 1, 1]));
  return x;
}

function product(g) {
  const a = source(g, { rank: [2, 3], where: (v) => count(v.dims) > 0 });
  if (count(a.dims) === 0) throw new NoRoom();
  const [k, columns] = [a.dims.at(-1), g.pick([1, 3, 8, 16, 17])];
  const turned = g.chance(0.3);
  const w = weights(g, a.type, turned ? [columns, k] : [k, columns], k);
  const x = factor(g, a, k, w.bound);
  const right = turned ? g.node('Transpose', [w], like(w, [k, columns]), { perm: [1n, 0n] }) : w;
  let y = g.node('MatMul', [x, right], inexact(x, k * x.bound * w.bound + 1, [...x.dims.slice(0, -1), columns]));
  if (g.chance(0.2)) y = times(g, y, near(g, y, 0.5), y.bound);
  if (g.chance(0.7))
    y = g.node('Add', swap(g, y, summands(g, y.type, g.pick([[columns], [1, columns], [1]]))), same(y, y.bound + 1));
  if (g.chance(0.2)) y = times(g, y, near(g, y, 0.5), y.bound);
  y = activate(g, y);
  if (g.chance(0.4)) {
    const beside = g.take({ types: [y.type], dims: y.dims });
    y = g.node('Add', swap(g, y, beside), same(y, y.bound + beside.bound));
  }
  return y;
}

function attention(g) {
  const [batch, heads, size] = [g.integer(1, 2), g.pick([1, 2, 3]), g.pick([4, 8, 16])];
  const [rows, past] = [g.pick([1, 3, 5, 17]), g.pick([1, 4, 7])];
  const type = g.pick(['float32', 'float32', 'float16']);
  const split = (of, perm) => {
    const x = g.bounded(g.take({ types: [type], dims: [batch, of, heads * size] }), 3);
    const parts = g.node('Reshape', [x, g.longs([0, of, heads, -1])], like(x, [batch, of, heads, size]));
    const dims = perm.map((axis) => parts.dims[axis]);
    return g.node('Transpose', [parts], like(parts, dims), { perm: perm.map(n) });
  };
  const [q, k, v] = [split(rows, [0, 2, 1, 3]), split(past, [0, 2, 3, 1]), split(past, [0, 2, 1, 3])];
  let scores = g.node('MatMul', [q, k], inexact(q, 9 * size, [batch, heads, rows, past]));
  scores = g.chance(0.5)
    ? node(g, 'Div', [scores, near(g, q, Math.sqrt(size))], 40)
    : times(g, scores, near(g, q, 1 / Math.sqrt(size)), 40);
  if (g.chance(0.5)) {
    const mask = g.fresh({
      type,
      dims: g.pick([
        [batch, 1, 1, past],
        [rows, past],
        [batch, heads, rows, past],
      ]),
      low: -4,
      high: 0,
    });
    scores = g.node('Add', swap(g, scores, mask), same(scores, 50));
  }
  const shares = g.node('Softmax', [scores], same(scores, 1), { axis: g.pick([-1n, 3n]) });
  const mixed = g.node('MatMul', [shares, v], inexact(v, 3, [batch, heads, rows, size]));
  const back = g.node('Transpose', [mixed], like(mixed, [batch, rows, heads, size]), { perm: [0n, 2n, 1n, 3n] });
  return g.node('Reshape', [back, g.longs([batch, rows, -1])], like(back, [batch, rows, heads * size]));
}

/** Order of axes away and back again, with nodes between that take any order. */
function turned(g) {
  let x = g.take({ types, rank: [2, 4], where: (v) => count(v.dims) > 0 });
  if (count(x.dims) === 0) throw new NoRoom();
  const perm = x.dims.map((_, i) => (i + 1) % x.dims.length);
  const turn = (y, by) =>
    g.node(
      'Transpose',
      [y],
      like(
        y,
        by.map((axis) => y.dims[axis]),
      ),
      { perm: by.map(n) },
    );
  x = turn(x, perm);
  for (let i = g.integer(1, 3); i > 0; i--) {
    const kind = g.integer(0, 6);
    const axis = g.integer(0, x.dims.length - 1);
    if (kind === 0) x = node(g, g.pick(['Relu', 'Tanh', 'Sigmoid', 'Abs']), [x], x.bound + 1);
    if (kind === 1)
      x = g.node(
        'Add',
        swap(g, x, summands(g, x.type, g.pick([[], [x.dims.at(-1)], [x.dims.at(-2), 1]]))),
        same(x, x.bound + 1),
      );
    if (kind === 2) x = node(g, 'Softmax', [x], 1, { axis: n(axis) });
    if (kind === 3)
      x = g.node(
        'ReduceMean',
        [x, g.longs([axis])],
        inexact(
          x,
          x.bound,
          x.dims.map((size, a) => (a === axis ? 1 : size)),
        ),
        { keepdims: 1n },
      );
    if (kind === 4)
      x = g.node(
        'Concat',
        [x, x],
        like(
          x,
          x.dims.map((size, a) => (a === axis ? 2 * size : size)),
        ),
        { axis: n(axis) },
      );
    if (kind === 5)
      x = g.node(
        'Slice',
        [x, g.longs([0]), g.longs([1]), g.longs([axis])],
        like(
          x,
          x.dims.map((size, a) => (a === axis ? 1 : size)),
        ),
      );
    if (kind === 6) {
      const other = g.fresh({ type: x.type, dims: perm.map((_, a) => x.dims[perm.indexOf(a)]), low: -1, high: 1 });
      x = g.node('Add', swap(g, x, turn(other, perm)), same(x, x.bound + 1));
    }
  }
  const back = perm.map((_, axis) => perm.indexOf(axis));
  return turn(x, g.chance(0.8) ? back : perm);
}

/** Dims that are computed from a value's own. */
function computedDims(g) {
  const x = g.take({ rank: [2, 4], where: (v) => count(v.dims) > 0 });
  if (count(x.dims) === 0) throw new NoRoom();
  const shape = g.node('Shape', [x], exactly('int64', [x.dims.length], 40));
  const kept = g.integer(1, x.dims.length - 1);
  const rest = regroup(g, count(x.dims.slice(kept)), g.integer(1, 2));
  const parts = x.dims.slice(0, kept).map((size, axis) => {
    const one = g.node('Gather', [shape, g.scalar('int64', axis)], exactly('int64', [], size), { axis: 0n });
    return g.node('Unsqueeze', [one, g.longs([0])], exactly('int64', [1], size));
  });
  const tail = rest.map((size, i) => (i === rest.length - 1 && g.chance(0.5) ? -1 : size));
  const dims = g.node('Concat', [...parts, g.longs(tail)], exactly('int64', [kept + tail.length], 3000), { axis: 0n });
  return g.node('Reshape', [x, dims], like(x, [...x.dims.slice(0, kept), ...rest]));
}

function spaceOfDepth(g) {
  const [batch, depth, high, wide, size] = [g.integer(1, 2), g.integer(1, 3), g.integer(1, 4), g.integer(1, 4), 2];
  const x = g.take({ types, dims: [batch, depth * size * size, high, wide] });
  const apart = g.chance(0.5) ? [batch, size, size, depth, high, wide] : [batch, depth, size, size, high, wide];
  const perm = apart[1] === size && apart[3] === depth && g.chance(0.9) ? [0, 3, 4, 1, 5, 2] : [0, 1, 4, 2, 5, 3];
  const parts = g.node('Reshape', [x, g.longs(apart)], like(x, apart));
  const moved = g.node(
    'Transpose',
    [parts],
    like(
      x,
      perm.map((axis) => apart[axis]),
    ),
    { perm: perm.map(n) },
  );
  const [first, second, ...others] = moved.dims;
  const dims = [first, second, others[0] * others[1], others[2] * others[3]];
  return g.node('Reshape', [moved, g.longs(dims)], like(x, dims));
}

function slicesToDepth(g) {
  const [high, wide, channels] = [2 * g.integer(1, 4), 2 * g.integer(1, 4), g.integer(1, 3)];
  const x = g.take({ types, dims: [1, channels, high, wide] });
  const quarter = [1, channels, high / 2, wide / 2];
  const parts = [
    [0, 0],
    [1, 0],
    [0, 1],
    [1, 1],
  ].map(([row, column]) => {
    const lists = [
      [row, column],
      [high, wide],
      [2, 3],
      [2, 2],
    ].map((list) => g.longs(list));
    return g.node('Slice', [x, ...lists], like(x, quarter));
  });
  const order = g.chance(0.7) ? parts : [parts[0], parts[2], parts[1], parts[3]];
  return g.node('Concat', order, like(x, [1, 4 * channels, high / 2, wide / 2]), { axis: 1n });
}

function casts(g) {
  const x = g.take({ types: ['float32', 'float16', 'int32', 'uint8', 'bool'], exact: true, bound: 400 });
  let y = x;
  for (let i = g.integer(2, 3); i > 0; i--) {
    const to = g.pick(['float32', 'float64', 'float16', 'float32', ...(isFloat(y.type) ? [] : ['int32', 'int64'])]);
    y = g.node('Cast', [y], { ...like(y), type: to, integral: y.integral && y.bound <= 256 }, { to: elementType(to) });
  }
  return y;
}

/** What changes nothing, or cancels. */
function noops(g) {
  let x = g.take({ types: [...types, 'int32', 'int64'], rank: [1, 4], where: (v) => isFloat(v.type) || v.exact });
  for (let i = g.integer(1, 3); i > 0; i--) {
    const kind = g.integer(0, 6);
    const wide = g.chance(0.2) ? Array(x.dims.length).fill(1) : [];
    if (kind === 0) x = g.node('Add', swap(g, x, g.scalar(x.type, 0, wide)), like(x));
    if (kind === 1) x = g.node('Mul', swap(g, x, g.scalar(x.type, 1, wide)), like(x));
    if (kind === 2) x = g.node('Sub', [x, g.scalar(x.type, 0, wide)], like(x));
    if (kind === 3) x = g.node('Div', [x, g.scalar(x.type, 1, wide)], like(x));
    if (kind === 4) x = g.node('Identity', [x], like(x));
    if (kind === 5) x = g.node('Slice', [x, g.longs([0]), g.longs([2 ** 40]), g.longs([0])], like(x));
    if (kind === 6) x = g.node('Expand', [x, g.longs([1])], like(x));
  }
  return x;
}

function notWhere(g) {
  const condition = g.take({ types: ['bool'], exact: true });
  const not = g.node('Not', [condition], exactly('bool', condition.dims));
  const a = g.take({ types, dims: condition.dims });
  const b = g.take({ types: [a.type], dims: condition.dims });
  const both = { exact: a.exact && b.exact, integral: a.integral && b.integral, bound: Math.max(a.bound, b.bound) };
  return g.node('Where', [not, a, b], { type: a.type, dims: a.dims, ...both });
}

function rowsByEquality(g) {
  const [rows, depth, width] = [g.integer(1, 6), g.pick([3, 8, 17]), g.integer(1, 9)];
  const ids = g.fresh({ type: 'int64', dims: [rows, 1], low: -1, high: depth, constant: false });
  const places = g.constant({
    type: 'int64',
    dims: [depth],
    data: encode('int64', [...Array(depth).keys()]),
    bound: depth,
  });
  const hot = g.node('Equal', swap(g, ids, places), exactly('bool', [rows, depth]));
  const numbers = g.node('Cast', [hot], exactly('float32', [rows, depth]), { to: 1n });
  const table = weights(g, 'float32', [depth, width], 1);
  return g.node('MatMul', [numbers, table], inexact(table, depth * table.bound, [rows, width]));
}

function integerProduct(g) {
  const [rows, k, columns] = [g.integer(1, 5), g.pick([3, 16, 33]), g.pick([1, 8, 17])];
  const x = g.take({ types: ['float32'], dims: [rows, k], exact: true });
  const codes = { type: 'uint8', dims: x.dims, exact: false, integral: true, bound: 255 };
  const one = (type) => ({ type, dims: [], exact: false, bound: 255 });
  const [q, s, z] = g.node('DynamicQuantizeLinear', [x], [codes, one('float32'), one('uint8')]);
  const type = g.pick(['int8', 'uint8']);
  const w = g.fresh({ type, dims: [k, columns], low: type === 'int8' ? -90 : 0, high: 90, constant: true });
  const zero = g.chance(0.6) ? [g.scalar(type, g.integer(0, 3))] : [];
  const sums = g.node('MatMulInteger', [q, w, z, ...zero], {
    type: 'int32',
    dims: [rows, columns],
    exact: false,
    integral: true,
    bound: 2 ** 24,
  });
  const floating = g.node('Cast', [sums], { type: 'float32', dims: sums.dims, bound: 9e3 }, { to: 1n });
  const scale = g.node('Mul', swap(g, s, g.scalar('float32', 2 ** -6)), { type: 'float32', dims: [], bound: 1 });
  const y = g.node('Mul', swap(g, floating, scale), same(floating, 9e3));
  return g.chance(0.5) ? g.node('Add', swap(g, y, summands(g, 'float32', [columns])), same(y, 9.1e3)) : y;
}

export const patterns = Object.fromEntries(
  Object.entries({
    gelu,
    gated,
    layerNorm,
    convChain,
    product,
    attention,
    turned,
    computedDims,
    spaceOfDepth,
    slicesToDepth,
    casts,
    noops,
    notWhere,
    rowsByEquality,
    integerProduct,
  }),
);
