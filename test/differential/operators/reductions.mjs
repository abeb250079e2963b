// Operators over axes: sums and their like, places of the largest, running sums, softmax, normalizations.
import { arithmetic, exactly, inexact, like, NoRoom } from '../builder.mjs';
import { count, floats, isFloat, largest, numeric } from '../numbers.mjs';
import { axisOf, said } from './movement.mjs';

const n = BigInt;
const summed = [...floats, 'int32', 'int64', 'uint32', 'uint64'];
const compared = [...floats, 'int8', 'uint8', 'int32', 'int64'];
const usable = (v) => isFloat(v.type) || v.exact;

/** Results of a reduction from the bound of its input and how many elements become one. */
const rules = {
  ReduceSum: [summed, (b, k) => b * k],
  ReduceMean: [floats, (b) => b],
  ReduceL1: [summed, (b, k) => b * k],
  ReduceL2: [floats, (b, k) => b * Math.sqrt(k)],
  ReduceSumSquare: [summed, (b, k) => b * b * k],
  ReduceLogSumExp: [floats, (b, k) => b + Math.log(k + 1)],
  ReduceLogSum: [floats, (b, k) => Math.log(b * k + 2)],
  ReduceProd: [summed, (b, k) => b ** k],
  ReduceMax: [compared, (b) => b],
  ReduceMin: [compared, (b) => b],
};

function reduce(op, [types, bound]) {
  return (g) => {
    let x = g.take({ types, rank: [0, 4], where: usable });
    const axes = [...x.dims.keys()].filter(() => g.chance(0.5));
    const chosen = axes.length ? axes : [...x.dims.keys()];
    const k = count(chosen.map((axis) => x.dims[axis]));
    if (k === 0 && !['ReduceSum', 'ReduceL1', 'ReduceSumSquare'].includes(op)) throw new NoRoom();
    if (isFloat(x.type)) {
      if (op === 'ReduceProd') x = g.bounded(x, 1);
      else if (op === 'ReduceLogSum') x = g.positive(x);
      else if (bound(x.bound, k) > largest[x.type]) x = g.bounded(x, Math.min(1, largest[x.type] / (k + 1)));
    }
    const keep = g.chance(0.5);
    const dims = keep
      ? x.dims.map((size, axis) => (chosen.includes(axis) ? 1 : size))
      : x.dims.filter((_, axis) => !chosen.includes(axis));
    const copies = ['ReduceMax', 'ReduceMin'].includes(op);
    const whole = ['ReduceSum', 'ReduceL1', 'ReduceSumSquare'].includes(op) || !isFloat(x.type);
    const out = copies
      ? like(x, dims)
      : whole
        ? arithmetic(x.type, dims, bound(x.bound, k), [x])
        : inexact(x, bound(x.bound, k), dims);
    const inputs = axes.length ? [x, g.longs(axes.map((axis) => said(g, axis, x.dims.length)))] : [x];
    return g.node(op, inputs, out, { keepdims: n(Number(keep)) });
  };
}

const place = (op) => (g) => {
  const x = g.take({ types: numeric, exact: true, rank: [1, 4] });
  const axis = axisOf(g, x);
  if (x.dims[axis] === 0) throw new NoRoom();
  const keep = g.chance(0.5);
  const dims = keep ? x.dims.map((size, i) => (i === axis ? 1 : size)) : x.dims.filter((_, i) => i !== axis);
  return g.node(op, [x], exactly('int64', dims, x.dims[axis]), {
    axis: n(said(g, axis, x.dims.length)),
    keepdims: n(Number(keep)),
    select_last_index: n(g.integer(0, 1)),
  });
};

function topK(g) {
  const x = g.take({ types: numeric.filter((type) => type !== 'bfloat16' || g.opset > 23), exact: true, rank: [1, 4] });
  const axis = axisOf(g, x);
  const k = g.integer(Math.min(1, x.dims[axis]), Math.min(x.dims[axis], 5));
  const dims = x.dims.map((size, i) => (i === axis ? k : size));
  return g.node('TopK', [x, g.longs([k])], [like(x, dims), exactly('int64', dims, x.dims[axis] + 1)], {
    axis: n(said(g, axis, x.dims.length)),
    largest: n(g.integer(0, 1)),
    sorted: 1n,
  });
}

const running = (op) => (g) => {
  let x = g.take({ types: summed, rank: [1, 4], where: usable });
  const axis = axisOf(g, x);
  const k = x.dims[axis];
  const bound = (b) => (op === 'CumSum' ? b * (k + 1) : Math.max(b, 1) ** (k + 1));
  if (isFloat(x.type) && bound(x.bound) > largest[x.type]) x = g.bounded(x, 1);
  return g.node(
    op,
    [x, g.scalar(g.pick(['int32', 'int64']), said(g, axis, x.dims.length))],
    arithmetic(x.type, x.dims, bound(x.bound), [x]),
    {
      exclusive: n(g.integer(0, 1)),
      reverse: n(g.integer(0, 1)),
    },
  );
};

const softmax = (op) => (g) => {
  const x = g.take({ types: floats, rank: [1, 4], exact: op === 'Hardmax' });
  const axis = axisOf(g, x);
  const out = op === 'Hardmax' ? exactly(x.type, x.dims) : inexact(x, op === 'Softmax' ? 1 : 2 * x.bound + 8);
  return g.node(op, [x], out, { axis: n(said(g, axis, x.dims.length)) });
};

/** A vector of factors near 1 or of summands near 0. */
export const factors = (g, type, dims) => g.fresh({ type, dims, low: 0.5, high: 1.5, integral: false });
export const summands = (g, type, dims) => g.fresh({ type, dims, low: -0.5, high: 0.5, integral: false });
const epsilon = () => ({ epsilon: 0.05 });
const bounded = (g, fresh) => g.bounded(g.take({ types: floats, ...fresh }), 20);

function layerNormalization(g) {
  const x = bounded(g, { rank: [1, 4] });
  const axis = axisOf(g, x);
  const dims = x.dims.slice(axis);
  const inputs = [x, factors(g, x.type, dims), ...(g.chance(0.7) ? [summands(g, x.type, dims)] : [])];
  return g.node('LayerNormalization', inputs, inexact(x, 60), { axis: n(said(g, axis, x.dims.length)), ...epsilon() });
}

function rmsNormalization(g) {
  const x = bounded(g, { rank: [1, 4] });
  const axis = axisOf(g, x);
  const inputs = [x, factors(g, x.type, x.dims.slice(axis))];
  return g.node('RMSNormalization', inputs, inexact(x, 60), { axis: n(said(g, axis, x.dims.length)), ...epsilon() });
}

function batchNormalization(g) {
  const x = bounded(g, { rank: [2, 5] });
  const dims = [x.dims[1]];
  const inputs = [
    factors(g, x.type, dims),
    summands(g, x.type, dims),
    summands(g, x.type, dims),
    factors(g, x.type, dims),
  ];
  return g.node('BatchNormalization', [x, ...inputs], inexact(x, 3 * x.bound + 3), epsilon());
}

function instanceNormalization(g) {
  const x = bounded(g, { rank: [3, 5] });
  const dims = [x.dims[1]];
  if (count(x.dims) === 0) throw new NoRoom();
  return g.node(
    'InstanceNormalization',
    [x, factors(g, x.type, dims), summands(g, x.type, dims)],
    inexact(x, 60),
    epsilon(),
  );
}

function groupNormalization(g) {
  const groups = g.pick([1, 2, 3]);
  const channels = groups * g.integer(1, 4);
  const x = bounded(g, { rank: [3, 4], dims: [g.integer(1, 2), channels, g.integer(1, 9), g.integer(1, 7)] });
  const inputs = [x, factors(g, x.type, [channels]), summands(g, x.type, [channels])];
  return g.node('GroupNormalization', inputs, inexact(x, 60), { num_groups: n(groups), ...epsilon() });
}

function lpNormalization(g) {
  const x = g.positive(g.take({ types: floats, rank: [1, 4] }));
  const axis = axisOf(g, x);
  return g.node('LpNormalization', [x], inexact(x, 1), { axis: n(axis), p: n(g.integer(1, 2)) });
}

function meanVariance(g) {
  const x = bounded(g, { rank: [3, 4], where: (v) => count(v.dims) > 8, exact: true });
  if (count(x.dims) < 4 || x.dims[0] * x.dims[1] === 0) throw new NoRoom();
  const axes = [...x.dims.keys()].filter((axis) => axis !== 1);
  // A constant channel has no deviation to divide by.
  const ramp = g.fresh({ type: x.type, dims: x.dims, low: -1, high: 1, integral: false });
  if (count(axes.map((axis) => x.dims[axis])) < 16) throw new NoRoom();
  return g.node('MeanVarianceNormalization', [ramp], inexact(ramp, 60), { axes: axes.map(n) });
}

function lrn(g) {
  const x = bounded(g, { rank: [3, 4] });
  return g.node('LRN', [x], inexact(x, x.bound), {
    size: n(g.pick([1, 3, 5])),
    alpha: 0.01,
    beta: 0.75,
    bias: 1 + g.next(),
  });
}

function dropout(g) {
  const x = g.take({ types: floats });
  return g.node('Dropout', [x], g.chance(0.3) ? [like(x), exactly('bool', x.dims)] : [like(x)]);
}

export const reductions = {
  ...Object.fromEntries(Object.entries(rules).map(([op, rule]) => [op, reduce(op, rule)])),
  ArgMax: place('ArgMax'),
  ArgMin: place('ArgMin'),
  TopK: topK,
  CumSum: running('CumSum'),
  CumProd: { since: 26, make: running('CumProd') },
  Softmax: softmax('Softmax'),
  LogSoftmax: softmax('LogSoftmax'),
  Hardmax: softmax('Hardmax'),
  LayerNormalization: layerNormalization,
  RMSNormalization: { since: 23, make: rmsNormalization },
  BatchNormalization: batchNormalization,
  InstanceNormalization: instanceNormalization,
  GroupNormalization: { since: 21, make: groupNormalization },
  LpNormalization: lpNormalization,
  MeanVarianceNormalization: meanVariance,
  LRN: lrn,
  Dropout: dropout,
};
