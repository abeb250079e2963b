// Attention, signals, regions of images, losses and the like.
import { exactly, inexact, like, NoRoom } from '../builder.mjs';
import { count, encode, everything } from '../numbers.mjs';
import { elementType } from './elementwise.mjs';
import { factors, summands } from './reductions.mjs';

const n = BigInt;

function attention(g) {
  const [batch, heads, size] = [g.integer(1, 2), g.pick([1, 2, 4]), g.pick([2, 8, 16])];
  const [rows, past] = [g.pick([1, 3, 17]), g.pick([1, 4, 7])];
  const type = g.type(['float32', 'float64', 'float16']);
  const x = (of, bound = 3) => g.bounded(g.take({ types: [type], dims: [batch, heads, of, size] }), bound);
  const [q, k, v] = [x(rows), x(past), x(past)];
  const mask = g.chance(0.4) ? [g.fresh({ type, dims: [rows, past], low: -3, high: 0, integral: false })] : [];
  const given = { is_causal: n(Number(mask.length === 0 && rows <= past && g.chance(0.4))) };
  return g.node('Attention', [q, k, v, ...mask], inexact(v, v.bound, q.dims), given);
}

function rotary(g) {
  const [batch, heads, steps, size] = [g.integer(1, 2), g.integer(1, 3), g.integer(1, 5), g.pick([2, 4, 8])];
  const x = g.take({ types: ['float32', 'float16'], dims: [batch, heads, steps, size] });
  const table = () => g.fresh({ type: x.type, dims: [batch, steps, size / 2], low: -1, high: 1, integral: false });
  return g.node('RotaryEmbedding', [x, table(), table()], inexact(x, 2 * x.bound), { interleaved: n(g.integer(0, 1)) });
}

function affineGrid(g) {
  const [batch, high, wide] = [g.integer(1, 3), g.integer(2, 6), g.integer(2, 6)];
  const theta = g.bounded(g.take({ types: ['float32', 'float64'], dims: [batch, 2, 3] }), 10);
  const size = g.longs([batch, 1, high, wide]);
  return g.node('AffineGrid', [theta, size], inexact(theta, 3 * theta.bound, [batch, high, wide, 2]), {
    align_corners: n(g.integer(0, 1)),
  });
}

function bitCast(g) {
  const groups = [
    ['int32', 'uint32'],
    ['int64', 'uint64'],
    ['int16', 'uint16'],
    ['int8', 'uint8'],
  ];
  const pair = g.pick(groups);
  const x = g.take({ types: pair, exact: true });
  const to = pair.find((type) => type !== x.type);
  return g.node('BitCast', [x], exactly(to, x.dims, 2 ** 62), { to: elementType(to) });
}

const window = (op) => (g) => {
  const size = g.integer(2, 33);
  return g.node(
    op,
    [g.scalar('int64', size)],
    { type: 'float32', dims: [size], bound: 1 },
    { periodic: n(g.integer(0, 1)) },
  );
};

function fourier(g) {
  const [rows, length] = [g.integer(1, 4), g.pick([1, 2, 4, 5, 8, 13, 16])];
  const x = g.bounded(g.take({ types: ['float32', 'float64'], dims: [rows, length, g.pick([1, 2])] }), 10);
  const real = x.dims[2] === 1 && g.chance(0.5);
  const dims = [rows, real ? (length >> 1) + 1 : length, 2];
  return g.node('DFT', [x, undefined, g.scalar('int64', 1)], inexact(x, 2 * length * x.bound, dims), {
    onesided: n(Number(real)),
    inverse: n(Number(!real && g.chance(0.4))),
  });
}

function shortFourier(g) {
  const [step, size, length] = [g.integer(1, 4), g.pick([4, 8, 9]), g.integer(9, 30)];
  const x = g.bounded(g.take({ types: ['float32', 'float64'], dims: [g.integer(1, 2), length, 1] }), 10);
  const taper = factors(g, x.type, [size]);
  const frames = Math.floor((length - size) / step) + 1;
  const out = inexact(x, 3 * size * x.bound, [x.dims[0], frames, (size >> 1) + 1, 2]);
  return g.node('STFT', [x, g.scalar('int64', step), taper, g.scalar('int64', size)], out, { onesided: 1n });
}

/** Regions of images, in pixels. */
function regions(g, number, high, wide, type, batch) {
  const boxes = Array.from({ length: number }, () => {
    const [x, y] = [g.integer(0, wide - 1), g.integer(0, high - 1)];
    const box = [x, y, g.integer(x, wide), g.integer(y, high)];
    return batch ? [g.integer(0, batch - 1), ...box] : box;
  });
  return g.constant({
    type,
    dims: [number, batch ? 5 : 4],
    data: encode(type, boxes.flat()),
    constant: g.chance(0.5),
    bound: 20,
  });
}

function roiAlign(g) {
  const [batch, channels, high, wide] = [g.integer(1, 2), g.integer(1, 4), g.integer(3, 9), g.integer(3, 9)];
  const x = g.take({ types: ['float32', 'float64'], dims: [batch, channels, high, wide] });
  const number = g.integer(1, 4);
  const at = Array.from({ length: number }, () => g.integer(0, batch - 1));
  const places = g.constant({ type: 'int64', dims: [number], data: encode('int64', at), bound: batch });
  const [rows, columns] = [g.integer(1, 3), g.integer(1, 3)];
  const boxes = regions(g, number, high, wide, x.type);
  return g.node('RoiAlign', [x, boxes, places], inexact(x, x.bound, [number, channels, rows, columns]), {
    output_height: n(rows),
    output_width: n(columns),
    sampling_ratio: n(g.integer(0, 2)),
    mode: 'avg',
  });
}

function maxRoiPool(g) {
  const [batch, channels, high, wide] = [g.integer(1, 2), g.integer(1, 4), g.integer(3, 9), g.integer(3, 9)];
  const x = g.take({ types: ['float32', 'float64'], dims: [batch, channels, high, wide] });
  const [number, rows, columns] = [g.integer(1, 3), g.integer(1, 3), g.integer(1, 3)];
  const out = like(x, [number, channels, rows, columns]);
  return g.node('MaxRoiPool', [x, regions(g, number, high - 1, wide - 1, x.type, batch)], out, {
    pooled_shape: [n(rows), n(columns)],
  });
}

function deformable(g) {
  const [channels, outputs, kernel, high, wide] = [
    g.integer(1, 4),
    g.integer(1, 4),
    g.pick([1, 2, 3]),
    g.integer(3, 7),
    g.integer(3, 7),
  ];
  const x = g.bounded(g.take({ types: ['float32', 'float64'], dims: [1, channels, high, wide] }), 20);
  const w = summands(g, x.type, [outputs, channels, kernel, kernel]);
  const out = [high - kernel + 1, wide - kernel + 1];
  const offsets = g.fresh({ type: x.type, dims: [1, 2 * kernel * kernel, ...out], low: -1, high: 1, integral: false });
  return g.node(
    'DeformConv',
    [x, w, offsets],
    inexact(x, channels * kernel * kernel * x.bound + 1, [1, outputs, ...out]),
    { kernel_shape: [n(kernel), n(kernel)] },
  );
}

const loss = (op) => (g) => {
  const [rows, classes] = [g.integer(1, 9), g.integer(2, 9)];
  const x = g.bounded(g.take({ types: ['float32', 'float64', 'float16'], dims: [rows, classes] }), 20);
  const target = g.fresh({ type: g.pick(['int64', 'int32']), dims: [rows], low: 0, high: classes - 1 });
  const weight = g.chance(0.4) ? [factors(g, x.type, [classes])] : [];
  const reduction = g.pick(['none', 'mean', 'sum']);
  const out = inexact(x, 50 * rows, reduction === 'none' ? [rows] : []);
  return g.node(op, [x, target, ...weight], out, { reduction });
};

function tensorScatter(g) {
  const [batch, rows, width] = [g.integer(1, 3), g.integer(3, 8), g.integer(1, 5)];
  const x = g.take({ types: everything, dims: [batch, rows, width] });
  const few = g.integer(1, 3);
  const y = g.take({ types: [x.type], dims: [batch, few, width] });
  const at = Array.from({ length: batch }, () => g.integer(0, rows - few));
  const places = g.constant({
    type: 'int64',
    dims: [batch],
    data: encode('int64', at),
    constant: g.chance(0.5),
    bound: rows,
  });
  const both = { exact: x.exact && y.exact, integral: x.integral && y.integral, bound: Math.max(x.bound, y.bound) };
  return g.node('TensorScatter', [x, y, places], { type: x.type, dims: x.dims, ...both }, { axis: 1n });
}

function optional(g) {
  const x = g.take({ types: everything.filter((type) => type !== 'bfloat16'), rank: [0, 3] });
  const held = g.node('Optional', [x], { ...like(x), kind: 'optional' });
  if (g.chance(0.4)) return g.node('OptionalHasElement', [held], exactly('bool', []));
  return g.node('OptionalGetElement', [held], like(x));
}

function termFrequencies(g) {
  const x = g.fresh({ type: 'int64', dims: [g.integer(1, 9)], low: 0, high: 4 });
  return g.node('TfIdfVectorizer', [x], exactly('float32', [5], 9), {
    mode: 'TF',
    min_gram_length: 1n,
    max_gram_length: 2n,
    max_skip_count: n(g.integer(0, 1)),
    ngram_counts: [0n, 3n],
    ngram_indexes: [0n, 1n, 2n, 3n, 4n],
    pool_int64s: [0n, 1n, 3n, 0n, 1n, 2n, 3n],
  });
}

function melWeights(g) {
  const [bins, length] = [g.integer(2, 6), g.pick([16, 32])];
  const inputs = [bins, length, 8000].map((number) => g.scalar('int64', number));
  const ends = [g.scalar('float32', 20), g.scalar('float32', 4000)];
  return g.node('MelWeightMatrix', [...inputs, ...ends], {
    type: 'float32',
    dims: [(length >> 1) + 1, bins],
    bound: 1,
  });
}

function unpool(g) {
  const [channels, high, wide] = [g.integer(1, 3), 2 * g.integer(1, 4), 2 * g.integer(1, 4)];
  const x = g.take({ types: ['float32', 'float64'], exact: true, dims: [1, channels, high, wide] });
  const given = { kernel_shape: [2n, 2n], strides: [2n, 2n] };
  const dims = [1, channels, high / 2, wide / 2];
  const [y, at] = g.node('MaxPool', [x], [like(x, dims), exactly('int64', dims, count(x.dims))], given);
  return g.node('MaxUnpool', [y, at], like(x), given);
}

function suppressed(g) {
  const [boxes, classes] = [g.integer(1, 8), g.integer(1, 2)];
  const corners = Array.from({ length: boxes }, () => [
    g.integer(0, 8),
    g.integer(0, 8),
    g.integer(9, 16),
    g.integer(9, 16),
  ]);
  const places = g.constant({
    type: 'float32',
    dims: [1, boxes, 4],
    data: encode('float32', corners.flat()),
    constant: g.chance(0.5),
  });
  const scores = g.fresh({ type: 'float32', dims: [1, classes, boxes], low: 0, high: 1, integral: false });
  const limits = [g.longs([3]), g.scalar('float32', 0.37, [1]), g.scalar('float32', 0.2, [1])];
  if (g.special) throw new NoRoom();
  return g.node('NonMaxSuppression', [places, scores, ...limits], {
    type: 'int64',
    dims: undefined,
    exact: true,
    integral: true,
    bound: 9,
  });
}

export const others = {
  Attention: { since: 23, make: attention },
  RotaryEmbedding: { since: 23, make: rotary },
  AffineGrid: affineGrid,
  BitCast: { since: 26, make: bitCast },
  BlackmanWindow: window('BlackmanWindow'),
  HammingWindow: window('HammingWindow'),
  HannWindow: window('HannWindow'),
  DFT: fourier,
  STFT: shortFourier,
  RoiAlign: roiAlign,
  MaxRoiPool: maxRoiPool,
  DeformConv: deformable,
  NegativeLogLikelihoodLoss: loss('NegativeLogLikelihoodLoss'),
  SoftmaxCrossEntropyLoss: loss('SoftmaxCrossEntropyLoss'),
  TensorScatter: { since: 24, make: tensorScatter },
  OptionalGetElement: optional,
  OptionalHasElement: optional,
  TfIdfVectorizer: termFrequencies,
  MelWeightMatrix: melWeights,
  MaxUnpool: unpool,
  NonMaxSuppression: suppressed,
};
