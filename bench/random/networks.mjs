// Families of random networks: each draws its sizes and gives its result.
import {
  activate,
  activations,
  add,
  attention,
  batchNorm,
  concat,
  conv,
  enlarge,
  layerNorm,
  linear,
  pool,
  recurrent,
  reshape,
  transpose,
} from './blocks.mjs';

const times = (count, step, first) => Array.from({ length: count }).reduce((x, _, i) => step(x, i), first);

/** Down and up again, with what was on the way down beside what comes up. */
function unet(g) {
  const size = g.pick([48, 64, 96, 128]);
  const channels = g.pick([8, 12, 16, 24]);
  const act = g.pick(activations);
  const how = g.pick(['transposed', 'shuffled', 'linear', 'nearest']);
  const twice = (x, outputs) => conv(g, conv(g, x, outputs, { act, norm: true }), outputs, { act, norm: true });
  const levels = [twice(g.input('x', [1, 3, size, size]), channels)];
  for (let i = 1; i < 4; i++) levels.push(twice(pool(g, levels.at(-1), 'MaxPool', 2, 2), channels << i));
  let y = levels.pop();
  while (levels.length) {
    const beside = levels.pop();
    y = twice(concat(g, [enlarge(g, y, beside.dims[1], how), beside], 1), beside.dims[1]);
  }
  return { note: `${size} c${channels} ${act} ${how}`, y: conv(g, y, g.pick([1, 4, 21]), { kernel: 1 }) };
}

/** Branches of several windows side by side. */
function inception(g) {
  const size = g.pick([28, 35, 56, 75]);
  const channels = g.pick([32, 48, 96]);
  const act = g.pick(activations);
  const block = (x) => {
    const narrow = Math.max(8, Math.floor(x.dims[1] / 4));
    const one = (outputs, from = x) => conv(g, from, outputs, { kernel: 1, act, norm: true });
    const three = conv(g, one(narrow), narrow, { act, norm: true });
    const five = conv(g, one(narrow >> 1), narrow, { kernel: 5, act, norm: true });
    return concat(g, [one(narrow), three, five, one(narrow, pool(g, x, 'AveragePool', 3, 1))], 1);
  };
  let y = conv(g, g.input('x', [1, 3, size * 2, size * 2]), channels, { kernel: g.pick([3, 5, 7]), stride: 2, act });
  y = times(g.pick([2, 3]), block, y);
  y = times(2, block, pool(g, y, 'MaxPool', 3, 2));
  return { note: `${size * 2} c${channels} ${act}`, y: classify(g, y, 1000) };
}

/** Depthwise windows of many sizes between products of channels. */
function separable(g) {
  const size = g.pick([64, 96, 112, 160]);
  const act = g.pick(activations);
  const kernel = g.pick([3, 5, 7, 9]);
  const block = (x, i) => {
    const outputs = i % 2 ? x.dims[1] : x.dims[1] + g.pick([8, 16, 24]);
    const wide = conv(g, x, x.dims[1], {
      kernel,
      groups: x.dims[1],
      stride: 1 + (i % 2),
      dilation: g.pick([1, 1, 2]),
      act,
      norm: true,
    });
    return conv(g, wide, outputs, { kernel: 1, act, norm: true });
  };
  const first = conv(g, g.input('x', [1, 3, size, size]), g.pick([16, 24, 40]), { stride: 2, act });
  return { note: `${size} k${kernel} ${act}`, y: classify(g, times(6, block, first), 100) };
}

/** Convolutions of groups, whose channels are weighed by what they hold. */
function grouped(g) {
  const size = g.pick([32, 40, 56]);
  const width = g.pick([8, 16, 24]);
  const channels = width * g.pick([4, 6, 8]);
  const act = g.pick(activations);
  const block = (x, i) => {
    const y = conv(g, conv(g, x, channels, { kernel: 1, act, norm: true }), channels, {
      groups: channels / width,
      stride: i === 1 ? 2 : 1,
      act,
    });
    const mean = g.op('GlobalAveragePool', [y], [1, channels, 1, 1]);
    const weight = conv(g, conv(g, mean, 8, { kernel: 1, act: 'Relu' }), channels, { kernel: 1, act: 'Sigmoid' });
    const z = conv(g, g.op('Mul', [y, weight], y.dims), channels, { kernel: 1, norm: true });
    return i === 1 ? z : activate(g, add(g, z, x), act);
  };
  const first = conv(g, g.input('x', [1, 3, size, size]), channels, { act });
  return { note: `${size} c${channels} of ${width} ${act}`, y: classify(g, times(4, block, first), 10) };
}

/** Dilated convolutions over time. */
function temporal(g) {
  const length = g.pick([200, 500, 1600]);
  const channels = g.pick([24, 48, 80, 128]);
  const act = g.pick(activations);
  const kernel = g.pick([3, 5, 7]);
  const block = (x, i) => {
    const y = conv(g, x, channels, { kernel, dilation: 2 ** (i % 5), act });
    return add(g, conv(g, y, channels, { kernel: 1 }), x);
  };
  const first = conv(g, g.input('x', [1, g.pick([1, 40, 80]), length]), channels, { kernel, stride: g.pick([1, 2]) });
  return { note: `${length} c${channels} k${kernel} ${act}`, y: times(6, block, batchNorm(g, first)) };
}

/** Pictures in steps of convolutions to steps of a recurrent network, as text is read. */
function reader(g) {
  const width = g.pick([100, 160, 320]);
  const hidden = g.pick([48, 96, 128]);
  const type = g.pick(['LSTM', 'GRU', 'RNN']);
  const act = g.pick(activations);
  let x = conv(g, g.input('x', [1, 1, 32, width]), 24, { act });
  for (const channels of [48, 96]) x = conv(g, pool(g, x, 'MaxPool', 2, 2), channels, { act, norm: true });
  const [, channels, high, wide] = x.dims;
  const steps = reshape(g, transpose(g, x, [3, 0, 1, 2]), [wide, 1, channels * high]);
  const y = recurrent(g, recurrent(g, steps, hidden, type, true), hidden, type, g.pick([true, false]));
  return {
    note: `32x${width} ${type} ${hidden} ${act}`,
    y: g.op('Softmax', [linear(g, y, 97)], [wide, 1, 97], { axis: 2 }),
  };
}

/** Layers of attention over rows, over others' rows, and products between. */
function transformer(g) {
  const width = g.pick([96, 128, 192, 256, 320]);
  const heads = g.pick([2, 4, 8]);
  const rows = g.pick([7, 24, 50, 77, 128]);
  const others = g.pick([10, 49, 100]);
  const batch = g.pick([1, 1, 3]);
  const act = g.pick(['gelu', 'swish', 'Relu', 'Tanh']);
  const context = linear(g, g.input('context', [batch, others, g.pick([64, 100, 256])]), width);
  const layer = (x) => {
    const self = add(g, attention(g, layerNorm(g, x), layerNorm(g, x), heads), x);
    const cross = add(g, attention(g, layerNorm(g, self), context, heads), self);
    return add(g, linear(g, linear(g, layerNorm(g, cross), 3 * width, { act }), width), cross);
  };
  const y = times(g.pick([1, 2, 3]), layer, g.input('x', [batch, rows, width]));
  return {
    note: `${batch}x${rows}x${width} h${heads} over ${others} ${act}`,
    y: linear(g, layerNorm(g, y), g.pick([2, 37, 500])),
  };
}

/** Products of channels for each patch, then of patches for each channel. */
function mixer(g) {
  const patches = g.pick([36, 49, 64, 196]);
  const width = g.pick([64, 128, 192]);
  const act = g.pick(['gelu', 'swish', 'Relu']);
  const mlp = (x, wide) => linear(g, linear(g, x, wide, { act }), x.dims.at(-1));
  const layer = (x) => {
    const across = add(g, transpose(g, mlp(transpose(g, layerNorm(g, x), [0, 2, 1]), 2 * patches), [0, 2, 1]), x);
    return add(g, mlp(layerNorm(g, across), 4 * width), across);
  };
  return { note: `${patches}x${width} ${act}`, y: times(g.pick([2, 4]), layer, g.input('x', [1, patches, width])) };
}

/** Points each by itself, then the largest of each feature. */
function points(g) {
  const many = g.pick([256, 500, 1024]);
  const act = g.pick(activations);
  let x = g.input('x', [1, 3, many]);
  for (const channels of [32, 64, g.pick([128, 200, 256])]) x = conv(g, x, channels, { kernel: 1, act, norm: true });
  const largest = g.op('ReduceMax', [x], [1, x.dims[1]], { axes: [2], keepdims: 0 });
  return { note: `${many} ${act}`, y: linear(g, linear(g, largest, 128, { act: 'Relu' }), 40) };
}

/** Features of several sizes, each with boxes and scores of its cells. */
function detector(g) {
  const size = g.pick([96, 128, 192, 224]);
  const channels = g.pick([12, 16, 24]);
  const act = g.pick(activations);
  const classes = g.pick([1, 3, 20, 80]);
  let x = conv(g, g.input('x', [1, 3, size, size]), channels, { kernel: g.pick([3, 6]) === 3 ? 3 : 5, stride: 2, act });
  const cells = [];
  for (let i = 0; i < 3; i++) {
    x = conv(g, x, channels * 2 ** (i + 1), { stride: 2, act, norm: true });
    x = add(g, conv(g, conv(g, x, channels << i, { kernel: 1, act }), x.dims[1], { act }), x);
    const head = conv(g, conv(g, x, channels * 2, { act }), 4 + classes, { kernel: 1 });
    cells.push(reshape(g, head, [1, 4 + classes, head.dims[2] * head.dims[3]]));
  }
  const all = transpose(g, concat(g, cells, 2), [0, 2, 1]);
  return { note: `${size} c${channels} of ${classes} ${act}`, y: g.op('Sigmoid', [all], all.dims) };
}

/** The mean of each channel, and a product. */
function classify(g, x, classes) {
  const mean = g.op('GlobalAveragePool', [x], [x.dims[0], x.dims[1], ...x.dims.slice(2).map(() => 1)]);
  return linear(g, reshape(g, mean, [x.dims[0], x.dims[1]]), classes);
}

export const families = { unet, inception, separable, grouped, temporal, reader, transformer, mixer, points, detector };
