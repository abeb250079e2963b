// Building blocks of the random networks: each takes a value of a Graph and gives another.

const tapsOf = (kernel, dilation) => (kernel - 1) * dilation + 1;

/** An activation by its name. */
export function activate(g, x, kind) {
  const op = (type, inputs, attributes) => g.op(type, inputs, x.dims, attributes);
  switch (kind) {
    case 'none':
      return x;
    case 'swish':
      return op('Mul', [x, op('Sigmoid', [x])]);
    case 'relu6':
      return op('Clip', [x, g.scalar(0), g.scalar(6)]);
    case 'prelu':
      return op('PRelu', [x, g.small([x.dims[1], ...x.dims.slice(2).map(() => 1)], 0.2)]);
    case 'mish':
      return op('Mul', [x, op('Tanh', [op('Softplus', [x])])]);
    case 'gelu': {
      const erf = op('Erf', [op('Mul', [x, g.scalar(Math.SQRT1_2)])]);
      return op('Mul', [op('Mul', [x, op('Add', [erf, g.scalar(1)])]), g.scalar(0.5)]);
    }
    default:
      return op(kind, [x]);
  }
}
export const activations = ['Relu', 'swish', 'relu6', 'prelu', 'mish', 'gelu', 'Elu', 'HardSwish', 'Tanh'];

/** Convolution along all axes after the first two, with what often follows it; padded so that stride 1 keeps the size. */
export function conv(
  g,
  x,
  outputs,
  { kernel = 3, stride = 1, groups = 1, dilation = 1, act = 'none', norm = false } = {},
) {
  const [batch, channels, ...sizes] = x.dims;
  const pads = sizes.map(() => Math.floor((tapsOf(kernel, dilation) - 1) / 2));
  const out = sizes.map((size, i) => Math.floor((size + 2 * pads[i] - tapsOf(kernel, dilation)) / stride) + 1);
  const each = (n) => sizes.map(() => n);
  const weights = g.weights([outputs, channels / groups, ...each(kernel)]);
  const y = g.op('Conv', [x, weights, ...(norm ? [] : [g.small([outputs])])], [batch, outputs, ...out], {
    kernel_shape: each(kernel),
    strides: each(stride),
    dilations: each(dilation),
    pads: [...pads, ...pads],
    group: groups,
  });
  return activate(g, norm ? batchNorm(g, y) : y, act);
}

export function batchNorm(g, x) {
  const dims = [x.dims[1]];
  return g.op('BatchNormalization', [x, g.small(dims, 1), g.small(dims), g.small(dims), g.small(dims, 1)], x.dims);
}

/** Twice the size by a transposed convolution, by an image of four times the channels, or by interpolation. */
export function enlarge(g, x, outputs, how) {
  const [batch, channels, ...sizes] = x.dims;
  const dims = [batch, outputs, ...sizes.map((size) => 2 * size)];
  if (how === 'transposed') {
    const kernel = g.pick([2, 4]);
    const pad = (kernel - 2) / 2;
    return g.op(
      'ConvTranspose',
      [x, g.weights([channels, outputs, kernel, kernel], channels * 4), g.small([outputs])],
      dims,
      {
        kernel_shape: [kernel, kernel],
        strides: [2, 2],
        pads: [pad, pad, pad, pad],
      },
    );
  }
  if (how === 'shuffled') return g.op('DepthToSpace', [conv(g, x, 4 * outputs)], dims, { blocksize: 2, mode: 'CRD' });
  const linear = { mode: 'linear', coordinate_transformation_mode: 'half_pixel' };
  const nearest = { mode: 'nearest', coordinate_transformation_mode: 'asymmetric', nearest_mode: 'floor' };
  const large = g.op(
    'Resize',
    [x, undefined, g.small([0]), g.integers(dims.with(1, channels))],
    dims.with(1, channels),
    how === 'linear' ? linear : nearest,
  );
  return conv(g, large, outputs);
}

export function pool(g, x, type, kernel, stride) {
  const [batch, channels, ...sizes] = x.dims;
  const pad = Math.floor((kernel - 1) / 2);
  const out = sizes.map((size) => Math.floor((size + 2 * pad - kernel) / stride) + 1);
  const each = (n) => sizes.map(() => n);
  return g.op(type, [x], [batch, channels, ...out], {
    kernel_shape: each(kernel),
    strides: each(stride),
    pads: [...each(pad), ...each(pad)],
  });
}

export const concat = (g, values, axis) =>
  g.op(
    'Concat',
    values,
    values[0].dims.with(
      axis,
      values.reduce((sum, { dims }) => sum + dims[axis], 0),
    ),
    { axis },
  );

export const add = (g, a, b) => g.op('Add', [a, b], a.dims);

/** Rows of the last axis times a matrix. */
export function linear(g, x, outputs, { bias = true, act = 'none' } = {}) {
  const inputs = x.dims.at(-1);
  const dims = x.dims.with(-1, outputs);
  const product = g.op('MatMul', [x, g.weights([inputs, outputs], inputs)], dims);
  return activate(g, bias ? g.op('Add', [product, g.small([outputs])], dims) : product, act);
}

export function layerNorm(g, x) {
  const dims = [x.dims.at(-1)];
  return g.op('LayerNormalization', [x, g.small(dims, 1), g.small(dims)], x.dims, { axis: x.dims.length - 1 });
}

export const reshape = (g, x, dims) => g.op('Reshape', [x, g.integers(dims)], dims);
export const transpose = (g, x, perm) =>
  g.op(
    'Transpose',
    [x],
    perm.map((axis) => x.dims[axis]),
    { perm },
  );

/** Attention of the rows of `x` over those of `context`. */
export function attention(g, x, context, heads) {
  const [batch, rows, width] = x.dims;
  const size = width / heads;
  const split = (of, perm) => transpose(g, reshape(g, linear(g, of, width), [batch, of.dims[1], heads, size]), perm);
  const q = split(x, [0, 2, 1, 3]);
  const k = split(context, [0, 2, 3, 1]);
  const v = split(context, [0, 2, 1, 3]);
  const dims = [batch, heads, rows, context.dims[1]];
  const scores = g.op('Div', [g.op('MatMul', [q, k], dims), g.scalar(Math.sqrt(size))], dims);
  const mixed = g.op('MatMul', [g.op('Softmax', [scores], dims, { axis: 3 }), v], q.dims);
  return linear(g, reshape(g, transpose(g, mixed, [0, 2, 1, 3]), [batch, rows, width]), width);
}

/** One layer of a recurrent network over [steps, batch, width]; both directions give twice the width. */
export function recurrent(g, x, hidden, type, both) {
  const [steps, batch, width] = x.dims;
  const directions = both ? 2 : 1;
  const gates = { LSTM: 4, GRU: 3, RNN: 1 }[type];
  const inputs = [
    x,
    g.weights([directions, gates * hidden, width], width),
    g.weights([directions, gates * hidden, hidden], hidden),
    g.small([directions, 2 * gates * hidden]),
  ];
  const direction = both ? 'bidirectional' : 'forward';
  const attributes = { hidden_size: hidden, direction, ...(type === 'GRU' && { linear_before_reset: 1 }) };
  const y = g.op(type, inputs, [steps, directions, batch, hidden], attributes);
  return reshape(g, transpose(g, y, [0, 2, 1, 3]), [steps, batch, directions * hidden]);
}
