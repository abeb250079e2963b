// Nodes between codes, as quantizers write them: dequantized, computed, quantized again.
import { inexact, like } from '../builder.mjs';
import { count, encode, highestInteger } from '../numbers.mjs';

const n = BigInt;
const power = (g, low, high, dims = []) =>
  g.constant({
    type: 'float32',
    dims,
    data: encode(
      'float32',
      Array.from({ length: count(dims) }, () => 2 ** g.integer(low, high)),
    ),
    integral: false,
  });

function codes(g, type, dims) {
  const low = type === 'uint8' ? 0 : -128;
  return g.take({ types: [type], dims, low, high: low + 255 });
}
function dequantized(g, type, dims) {
  const x = codes(g, type, dims);
  const inputs = [x, power(g, -6, -5), g.scalar(type, g.integer(0, 6))];
  return g.node('DequantizeLinear', inputs, { type: 'float32', dims, exact: x.exact, bound: 9 });
}
function quantized(g, type, x) {
  const inputs = [x, power(g, -5, -2), g.scalar(type, g.integer(0, 6))];
  const out = { type, dims: x.dims, exact: false, integral: true, bound: highestInteger(type) };
  const y = g.node('QuantizeLinear', inputs, out);
  return g.chance(0.5)
    ? g.node('DequantizeLinear', [y, ...inputs.slice(1)], { type: 'float32', dims: x.dims, bound: 70 })
    : y;
}

/** Constant weights as codes, one scale or one for each place of an axis. */
function weightsOf(g, dims, axis) {
  const data = encode(
    'int8',
    Array.from({ length: count(dims) }, () => g.integer(-127, 127)),
  );
  const w = g.constant({ type: 'int8', dims, data, bound: 127 });
  const each = g.chance(0.4) ? [dims[axis]] : [];
  const zero = g.constant({ type: 'int8', dims: each, data: new Int8Array(count(each)), bound: 1 });
  return g.node(
    'DequantizeLinear',
    [w, power(g, -8, -7, each), zero],
    { type: 'float32', dims, exact: true, bound: 1 },
    each.length ? { axis: n(axis) } : {},
  );
}

const computed = {
  conv(g, type) {
    const [inside, outside, kernel] = [g.pick([3, 8, 16]), g.pick([4, 16, 32]), g.pick([1, 3])];
    const x = dequantized(g, type, [1, inside, g.integer(3, 7), g.integer(3, 9)]);
    const w = weightsOf(g, [outside, inside, kernel, kernel], 0);
    const dims = [1, outside, x.dims[2] - kernel + 1, x.dims[3] - kernel + 1];
    const y = g.node('Conv', [x, w], inexact(x, inside * kernel * kernel * 9, dims), {
      kernel_shape: [n(kernel), n(kernel)],
    });
    return g.chance(0.5) ? g.node('Relu', [y], like(y)) : y;
  },
  product(g, type) {
    const [rows, k, columns] = [g.integer(1, 5), g.pick([4, 16, 33]), g.pick([1, 8, 17])];
    const x = dequantized(g, type, [rows, k]);
    return g.node(g.pick(['MatMul', 'Gemm']), [x, weightsOf(g, [k, columns], 1)], inexact(x, 9 * k, [rows, columns]));
  },
  sum(g, type) {
    const x = dequantized(g, type, g.dims([1, 4]));
    const op = g.pick(['Add', 'Mul']);
    return g.node(op, [x, dequantized(g, type, x.dims)], inexact(x, op === 'Add' ? 18 : 81));
  },
  sigmoid(g, type) {
    const x = dequantized(g, type, g.dims([1, 4]));
    return g.node('Sigmoid', [x], inexact(x, 1));
  },
  mean(g, type) {
    const x = dequantized(g, type, [1, g.integer(1, 17), g.integer(1, 5), g.integer(1, 5)]);
    return g.node('GlobalAveragePool', [x], inexact(x, 9, [...x.dims.slice(0, 2), 1, 1]));
  },
  joined(g, type) {
    const x = dequantized(g, type, [g.integer(1, 3), g.integer(1, 5)]);
    return g.node('Concat', [x, dequantized(g, type, x.dims)], inexact(x, 9, [x.dims[0], 2 * x.dims[1]]), { axis: 1n });
  },
  chosen(g, type) {
    const x = dequantized(g, type, g.dims([1, 3]));
    const condition = g.take({ types: ['bool'], dims: x.dims, exact: true });
    const other = g.chance(0.5) ? dequantized(g, type, x.dims) : g.scalar('float32', 0.25);
    return g.node('Where', [condition, x, other], inexact(x, 9));
  },
  moved(g, type) {
    const x = dequantized(g, type, [1, 4, g.integer(2, 6), g.integer(2, 6)]);
    const [batch, channels, high, wide] = x.dims;
    if (g.chance(0.5))
      return g.node('Transpose', [x], like(x, [batch, high, wide, channels]), { perm: [0n, 2n, 3n, 1n] });
    return g.node('MaxPool', [x], like(x, [batch, channels, high - 1, wide - 1]), { kernel_shape: [2n, 2n] });
  },
};

export const units = Object.fromEntries(
  Object.entries(computed).map(([name, compute]) => [
    `${name} of codes`,
    (g) => {
      const type = g.pick(['uint8', 'int8']);
      return quantized(g, type, compute(g, type));
    },
  ]),
);
