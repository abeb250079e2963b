// Operators that move elements: what goes in comes out elsewhere.
import { exactly, like, NoRoom } from '../builder.mjs';
import { count, encode, everything, highestInteger, isFloat, numeric } from '../numbers.mjs';

const n = BigInt;
const axisOf = (g, value) => {
  if (value.dims.length === 0) throw new NoRoom();
  return g.integer(0, value.dims.length - 1);
};
/** An axis as a model may say it: from the front or from the end. */
const said = (g, axis, rank) => (g.chance(0.3) ? axis - rank : axis);
const shuffled = (g, list) =>
  list
    .map((item) => [g.next(), item])
    .sort((a, b) => a[0] - b[0])
    .map(([, item]) => item);

function transpose(g) {
  const x = g.take({ rank: [0, 5] });
  const perm = shuffled(g, [...x.dims.keys()]);
  if (g.chance(0.2)) return g.node('Transpose', [x], like(x, x.dims.toReversed?.() ?? [...x.dims].reverse()));
  return g.node(
    'Transpose',
    [x],
    like(
      x,
      perm.map((axis) => x.dims[axis]),
    ),
    { perm: perm.map(n) },
  );
}

/** Other dims of so many elements. */
export function regroup(g, total, parts) {
  const dims = [];
  let rest = total;
  for (let i = 1; i < parts; i++) {
    const factors = [1, 2, 3, 5, 7, 8, 11, 13, 16, 17].filter((f) => rest % f === 0);
    dims.push(g.pick(factors));
    rest /= dims.at(-1);
  }
  return [...dims, rest];
}

function reshape(g) {
  const x = g.take({ rank: [0, 5] });
  const total = count(x.dims);
  if (total === 0) throw new NoRoom();
  const dims = regroup(g, total, g.integer(1, 5));
  const asked = [...dims];
  if (g.chance(0.5)) asked[g.integer(0, dims.length - 1)] = -1;
  const copied = asked.findIndex((size, i) => size === x.dims[i] && size !== -1);
  if (copied >= 0 && g.chance(0.4)) asked[copied] = 0;
  return g.node('Reshape', [x, g.longs(asked)], like(x, dims));
}

function flatten(g) {
  const x = g.take({ rank: [0, 5] });
  const axis = g.integer(0, x.dims.length);
  return g.node('Flatten', [x], like(x, [count(x.dims.slice(0, axis)), count(x.dims.slice(axis))]), { axis: n(axis) });
}

function squeeze(g) {
  const x = g.take({ rank: [1, 5], where: (v) => v.dims.includes(1) });
  const ones = [...x.dims.keys()].filter((axis) => x.dims[axis] === 1);
  if (!ones.length) throw new NoRoom();
  const axes = ones.filter(() => g.chance(0.6));
  const gone = axes.length ? axes : ones;
  const out = like(
    x,
    x.dims.filter((_, axis) => !gone.includes(axis)),
  );
  return g.node('Squeeze', axes.length ? [x, g.longs(axes.map((axis) => said(g, axis, x.dims.length)))] : [x], out);
}

function unsqueeze(g) {
  const x = g.take({ rank: [0, 4] });
  const rank = x.dims.length + g.integer(1, 2);
  const axes = shuffled(
    g,
    Array.from({ length: rank }, (_, i) => i),
  ).slice(0, rank - x.dims.length);
  const from = [...x.dims];
  const dims = Array.from({ length: rank }, (_, i) => (axes.includes(i) ? 1 : from.shift()));
  return g.node('Unsqueeze', [x, g.longs(axes.map((axis) => said(g, axis, rank)))], like(x, dims));
}

function expand(g) {
  const x = g.take({ rank: [0, 4], where: (v) => count(v.dims) <= 300 });
  const dims = x.dims.map((size) => (size === 1 ? g.integer(1, 4) : size));
  const front = g.chance(0.3) ? [g.integer(1, 3)] : [];
  const asked = [...front, ...dims].map((size) => (front.length === 0 && g.chance(0.2) ? 1 : size));
  const out = [...front, ...dims].map((size, i) => (asked[i] === 1 ? (x.dims[i - front.length] ?? 1) : size));
  return g.node('Expand', [x, g.longs(asked)], like(x, out));
}

function tile(g) {
  const x = g.take({ rank: [1, 4], where: (v) => count(v.dims) <= 300 });
  const repeats = x.dims.map(() => g.pick([1, 1, 2, 3]));
  return g.node(
    'Tile',
    [x, g.longs(repeats)],
    like(
      x,
      x.dims.map((size, i) => size * repeats[i]),
    ),
  );
}

/** How many elements a slice takes of an axis. */
function taken(start, end, step, size) {
  const inside = (place, low, high) => Math.min(high, Math.max(low, place < 0 ? place + size : place));
  const [low, high] = step > 0 ? [0, size] : [-1, size - 1];
  const first = inside(start, Math.max(low, 0), Math.max(high, 0));
  return size === 0 ? 0 : Math.max(0, Math.ceil((inside(end, low, high) - first) / step));
}

function slice(g) {
  const x = g.take({ rank: [1, 5] });
  const axes = shuffled(g, [...x.dims.keys()]).slice(0, g.integer(1, x.dims.length));
  const dims = [...x.dims];
  const [starts, ends, steps] = [[], [], []];
  axes.forEach((axis, i) => {
    const size = x.dims[axis];
    steps.push(g.pick([1, 1, 1, 2, 3, -1, -2]));
    const [low, high] = [g.integer(-1, size >> 1), g.pick([size, size, -1, size + 5, 2 ** 40])];
    starts.push(steps[i] > 0 ? low : high);
    ends.push(steps[i] > 0 ? high : g.pick([low, -size - 1, -(2 ** 40)]));
    dims[axis] = taken(starts[i], ends[i], steps[i], size);
  });
  const inputs = [starts, ends, axes.map((axis) => said(g, axis, x.dims.length)), steps];
  if (steps.every((step) => step === 1) && g.chance(0.5)) inputs.pop();
  return g.node('Slice', [x, ...inputs.map((list) => g.longs(list))], like(x, dims));
}

/** Indices below a size, counted from the end as well. */
function indices(g, dims, size, { distinct = false, negative = true } = {}) {
  const type = g.pick(['int64', 'int64', 'int32']);
  let next = 0;
  const list = Array.from({ length: count(dims) }, () => (distinct ? next++ : g.integer(0, size - 1)));
  const data = (distinct ? shuffled(g, list) : list).map((i) => (negative && g.chance(0.2) ? i - size : i));
  if (size === 0 && data.length) throw new NoRoom();
  return g.constant({ type, dims, data: encode(type, data), constant: g.chance(0.6), bound: size });
}

function gather(g) {
  const x = g.take({ rank: [1, 4] });
  const axis = axisOf(g, x);
  const at = indices(
    g,
    g.dims([0, 2]).map((size) => Math.min(size, 5)),
    x.dims[axis],
  );
  const dims = [...x.dims.slice(0, axis), ...at.dims, ...x.dims.slice(axis + 1)];
  return g.node('Gather', [x, at], like(x, dims), { axis: n(said(g, axis, x.dims.length)) });
}

function gatherElements(g) {
  const x = g.take({ rank: [1, 4] });
  const axis = axisOf(g, x);
  const dims = x.dims.map((size, i) => (i === axis ? g.integer(1, 4) : g.integer(Math.min(1, size), size)));
  const at = indices(g, dims, x.dims[axis]);
  return g.node('GatherElements', [x, at], like(x, dims), { axis: n(said(g, axis, x.dims.length)) });
}

/** Index tuples that all lie inside: their last axis has an index for each of the first `depth` axes. */
function tuples(g, dims, lead, depth, distinct) {
  const total = count(lead);
  const room = count(dims.slice(0, depth));
  if (room === 0 || (distinct && total > room)) throw new NoRoom();
  const places = distinct
    ? shuffled(
        g,
        Array.from({ length: room }, (_, i) => i),
      )
    : undefined;
  const data = Array.from({ length: total }, (_, i) => {
    let place = places ? places[i] : g.integer(0, room - 1);
    return dims.slice(0, depth).map((_, axis) => {
      const below = count(dims.slice(axis + 1, depth));
      const index = Math.floor(place / below);
      place %= below;
      return g.chance(0.15) ? index - dims[axis] : index;
    });
  });
  return g.constant({
    type: 'int64',
    dims: [...lead, depth],
    data: encode('int64', data.flat()),
    constant: g.chance(0.6),
    bound: 40,
  });
}

function gatherND(g) {
  const x = g.take({ rank: [1, 4] });
  const depth = g.integer(1, x.dims.length);
  const lead = g.dims([0, 2]).map((size) => Math.min(size, 4));
  return g.node('GatherND', [x, tuples(g, x.dims, lead, depth, false)], like(x, [...lead, ...x.dims.slice(depth)]));
}

/** Values that replace some of another's, alike in type. */
const updates = (g, x, dims) => g.take({ types: [x.type], dims });
const merged = (x, y, dims = x.dims) => ({
  type: x.type,
  dims,
  exact: x.exact && y.exact,
  integral: x.integral && y.integral,
  bound: Math.max(x.bound, y.bound),
});

function scatterND(g) {
  const x = g.take({ rank: [1, 4] });
  const depth = g.integer(1, x.dims.length);
  const room = count(x.dims.slice(0, depth));
  const by =
    x.type !== 'bool' && numeric.includes(x.type) && x.exact && g.chance(0.3) ? g.pick(['max', 'min']) : 'none';
  const lead = [Math.min(g.integer(1, 4), room)];
  const y = updates(g, x, [...lead, ...x.dims.slice(depth)]);
  const given = by === 'none' ? {} : { reduction: by };
  return g.node('ScatterND', [x, tuples(g, x.dims, lead, depth, true), y], merged(x, y), given);
}

function scatterElements(g) {
  const x = g.take({ rank: [1, 4] });
  const axis = axisOf(g, x);
  const dims = x.dims.map((size, i) => (i === axis ? 1 : g.integer(Math.min(1, size), size)));
  const y = updates(g, x, dims);
  const by =
    numeric.includes(x.type) && x.exact && y.exact && g.chance(0.3) ? { reduction: g.pick(['max', 'min']) } : {};
  const at = indices(g, dims, x.dims[axis]);
  return g.node('ScatterElements', [x, at, y], merged(x, y), { axis: n(said(g, axis, x.dims.length)), ...by });
}

function concat(g) {
  const x = g.take({ rank: [1, 4] });
  const axis = axisOf(g, x);
  const list = [x];
  for (let more = g.integer(0, 3); more > 0; more--) {
    const dims = x.dims.map((size, i) => (i === axis ? g.size() : size));
    const alike = (v) => v.dims.length === x.dims.length && v.dims.every((size, i) => i === axis || size === x.dims[i]);
    list.push(g.take({ types: [x.type], rank: [1, 4], ...(g.chance(0.4) ? { dims } : { where: alike }) }));
  }
  const size = list.reduce((sum, value) => sum + value.dims[axis], 0);
  const dims = x.dims.map((other, i) => (i === axis ? size : other));
  return g.node(
    'Concat',
    list,
    list.reduce((out, value) => merged(out, value, dims), x),
    { axis: n(said(g, axis, dims.length)) },
  );
}

function split(g) {
  const x = g.take({ rank: [1, 4], where: (v) => v.dims.some((size) => size > 1) });
  const axis = axisOf(g, x);
  const size = x.dims[axis];
  const parts = g.integer(1, Math.min(4, Math.max(1, size)));
  const dims = (of) => x.dims.map((other, i) => (i === axis ? of : other));
  const given = { axis: n(said(g, axis, x.dims.length)) };
  const each = Math.ceil(size / parts);
  if (g.chance(0.5) && each * (parts - 1) < size) {
    const outs = Array.from({ length: parts }, (_, i) =>
      like(x, dims(i < parts - 1 ? each : size - each * (parts - 1))),
    );
    return g.node('Split', [x], outs, { ...given, num_outputs: n(parts) });
  }
  const cuts = Array.from({ length: parts - 1 }, () => g.integer(0, size)).sort((a, b) => a - b);
  const lengths = [...cuts, size].map((end, i) => end - (cuts[i - 1] ?? 0));
  return g.node(
    'Split',
    [x, g.longs(lengths)],
    lengths.map((length) => like(x, dims(length))),
    given,
  );
}

function pad(g) {
  const x = g.take({ rank: [1, 4], types: [...numeric, 'bool'], where: (v) => count(v.dims) < 800 });
  const modes = x.dims.every((size) => size > 1) ? ['constant', 'reflect', 'edge', 'wrap'] : ['constant'];
  const mode = g.pick(modes);
  const room = (size) => (mode === 'constant' ? 3 : Math.min(2, size - 1));
  const pads = [...x.dims, ...x.dims].map((size, i) => {
    const crop = mode === 'constant' && g.chance(0.1) && size > 2 && i < x.dims.length;
    return crop ? -1 : g.chance(0.5) ? g.integer(0, room(size)) : 0;
  });
  const dims = x.dims.map((size, i) => size + pads[i] + pads[i + x.dims.length]);
  const filled = mode === 'constant' && g.chance(0.5) && x.type !== 'bool';
  const inputs = [x, g.longs(pads), ...(filled ? [g.scalar(x.type, isFloat(x.type) && !x.integral ? 0.5 : 2)] : [])];
  return g.node('Pad', inputs, { ...like(x, dims), bound: Math.max(2, x.bound) }, { mode });
}

function blocks(op) {
  return (g) => {
    const size = g.pick([2, 3]);
    const [batch, depth, high, wide] = [g.integer(1, 2), g.integer(1, 3), g.integer(1, 5), g.integer(1, 5)];
    const [deep, flat] = [
      [batch, depth * size * size, high, wide],
      [batch, depth, high * size, wide * size],
    ];
    const [from, to] = op === 'DepthToSpace' ? [deep, flat] : [flat, deep];
    const x = g.take({ dims: from, types: [...numeric, 'bool'] });
    const mode = op === 'DepthToSpace' ? { mode: g.pick(['DCR', 'CRD']) } : {};
    return g.node(op, [x], like(x, to), { blocksize: n(size), ...mode });
  };
}

function reverseSequence(g) {
  const x = g.take({ rank: [2, 4], types: everything.filter((type) => type !== 'bfloat16' || g.opset > 27) });
  const first = g.chance(0.5);
  const [batch, time] = first ? [1, 0] : [0, 1];
  const lengths = Array.from({ length: x.dims[batch] }, () => g.integer(Math.min(1, x.dims[time]), x.dims[time]));
  return g.node('ReverseSequence', [x, g.longs(lengths)], like(x), { batch_axis: n(batch), time_axis: n(time) });
}

function trilu(g) {
  const x = g.take({ rank: [2, 4], types: [...numeric, 'bool'] });
  const inputs = g.chance(0.5) ? [x, g.scalar('int64', g.integer(-3, 3))] : [x];
  return g.node('Trilu', inputs, like(x), { upper: n(g.integer(0, 1)) });
}

function centerCropPad(g) {
  const x = g.take({ rank: [1, 4] });
  const dims = x.dims.map(() => g.integer(1, 6));
  return g.node('CenterCropPad', [x, g.longs(dims)], like(x, dims));
}

function compress(g) {
  const x = g.take({ rank: [1, 4], types: everything.filter((type) => type !== 'bfloat16' || g.opset > 27) });
  const axis = axisOf(g, x);
  const data = Array.from({ length: g.integer(0, x.dims[axis]) }, () => g.integer(0, 1));
  const kept = data.filter(Boolean).length;
  const mask = g.constant({ type: 'bool', dims: [data.length], data: encode('bool', data), constant: g.chance(0.5) });
  const dims = x.dims.map((size, i) => (i === axis ? kept : size));
  return g.node('Compress', [x, mask], like(x, dims), { axis: n(axis) });
}

function oneHot(g) {
  const at = g.take({
    types: ['int64', 'int32', 'uint8', 'float32'],
    rank: [0, 3],
    exact: true,
    where: (v) => v.integral,
  });
  const depth = g.integer(1, 6);
  const values = g.take({ dims: [2], types: everything.filter((type) => type !== 'bfloat16') });
  const axis = g.integer(0, at.dims.length);
  const dims = [...at.dims.slice(0, axis), depth, ...at.dims.slice(axis)];
  return g.node('OneHot', [at, g.scalar('int64', depth, g.pick([[], [1]])), values], like(values, dims), {
    axis: n(said(g, axis, dims.length)),
  });
}

const open = (type, bound) => ({ type, dims: undefined, exact: true, integral: true, bound });

function nonZero(g) {
  const x = g.take({ types: [...numeric, 'bool'], exact: true, rank: [1, 4] });
  return g.node('NonZero', [x], open('int64', 40));
}

function unique(g) {
  const x = g.take({ types: ['float32', 'float64', 'int64', 'int32', 'string', 'uint8'], exact: true, rank: [1, 3] });
  const given = g.chance(0.5) ? { axis: n(axisOf(g, x)) } : {};
  const long = open('int64', highestInteger('int32'));
  if (given.axis !== undefined && x.dims.includes(0)) throw new NoRoom();
  const outs = [{ ...open(x.type, x.bound), integral: x.integral }, long, long, long].slice(0, g.integer(1, 4));
  return g.node('Unique', [x], outs, { ...given, sorted: n(g.integer(0, 1)) });
}

const shape = (g) => {
  const x = g.take({ rank: [0, 5] });
  const start = g.chance(0.3) ? g.integer(0, x.dims.length) : 0;
  return g.node('Shape', [x], exactly('int64', [x.dims.length - start], Math.max(40, ...x.dims)), { start: n(start) });
};

const size = (g) => {
  const x = g.take({ rank: [0, 5] });
  return g.node('Size', [x], exactly('int64', [], Math.max(1, count(x.dims))));
};

function constantOfShape(g) {
  const dims = g.dims([0, 3]);
  const type = g.type([...numeric, 'bool']);
  const value = g.integer(0, 1);
  return g.node('ConstantOfShape', [g.longs(dims)], exactly(type, dims), {
    value: { type, dims: [1], data: encode(type, [value]) },
  });
}

function eyeLike(g) {
  const x = g.take({ types: [...numeric, 'bool'], rank: [2, 2] });
  return g.node('EyeLike', [x], exactly(x.type, x.dims), { k: n(g.integer(-2, 2)) });
}

function range(g) {
  const type = g.type(['float32', 'float64', 'int16', 'int32', 'int64']);
  const [start, length, step] = [g.integer(-3, 3), g.integer(0, 9), g.pick([1, 2, -1])];
  const inputs = [start, start + length * step, step].map((number) => g.scalar(type, number));
  return g.node('Range', inputs, exactly(type, [length], 25));
}

export const movement = {
  Transpose: transpose,
  Reshape: reshape,
  Flatten: flatten,
  Squeeze: squeeze,
  Unsqueeze: unsqueeze,
  Expand: expand,
  Tile: tile,
  Slice: slice,
  Gather: gather,
  GatherElements: gatherElements,
  GatherND: gatherND,
  ScatterND: scatterND,
  ScatterElements: scatterElements,
  Concat: concat,
  Split: split,
  Pad: pad,
  DepthToSpace: blocks('DepthToSpace'),
  SpaceToDepth: blocks('SpaceToDepth'),
  ReverseSequence: reverseSequence,
  Trilu: trilu,
  CenterCropPad: centerCropPad,
  Compress: compress,
  OneHot: oneHot,
  NonZero: nonZero,
  Unique: unique,
  Shape: shape,
  Size: size,
  ConstantOfShape: constantOfShape,
  EyeLike: eyeLike,
  Range: range,
};
export { axisOf, said };
