// Codes of 8, 16 and 4 bits, and operators on them.
import { exactly, NoRoom } from '../builder.mjs';
import { count, encode, highestInteger } from '../numbers.mjs';
import { windows } from './products.mjs';

const n = BigInt;
const bytes = ['uint8', 'int8'];
/** Scales are powers of two: what is exact before they divide it is so after. */
const scale = (g, type, dims = [], power = g.integer(-7, -3)) =>
  g.constant({
    type,
    dims,
    data: encode(
      type,
      Array.from({ length: count(dims) }, () => 2 ** (power - (dims.length ? g.integer(0, 1) : 0))),
    ),
    integral: false,
    bound: 1,
  });
const zero = (g, type, dims = [], value) =>
  g.constant({
    type,
    dims,
    data: encode(
      type,
      Array.from({ length: count(dims) }, () => value ?? g.integer(type.startsWith('u') ? 2 : -3, 5)),
    ),
    bound: 5,
  });
/** Codes that depend on rounded numbers may lie a step apart. */
const codes = (type, dims, exact) => ({ type, dims, exact, integral: true, bound: highestInteger(type) });
const codesOf = (g, type, dims) =>
  g.take({ types: [type], dims, low: type === 'uint8' ? 0 : -128, high: type === 'uint8' ? 255 : 127 });

function quantize(g) {
  const x = g.take({ types: ['float32', 'float32', 'float16', 'bfloat16'], rank: [0, 4] });
  const type = g.pick(['uint8', 'int8', 'uint8', 'int8', ...(g.opset > 20 ? ['uint16', 'int16'] : [])]);
  const rank = x.dims.length;
  const axis = rank > 0 && g.chance(0.3) ? g.integer(0, rank - 1) : undefined;
  const dims = axis === undefined ? [] : [x.dims[axis]];
  const inputs = [x, scale(g, x.type, dims), zero(g, type, dims)];
  return g.node('QuantizeLinear', inputs, codes(type, x.dims, x.exact), axis === undefined ? {} : { axis: n(axis) });
}

function dequantize(g) {
  const types = ['uint8', 'int8', 'int32', ...(g.opset > 20 ? ['uint16', 'int16'] : [])];
  const x = g.take({ types, rank: [0, 4], where: (v) => v.bound <= 2 ** 16 });
  const axis = x.dims.length > 0 && g.chance(0.3) ? g.integer(0, x.dims.length - 1) : undefined;
  const dims = axis === undefined ? [] : [x.dims[axis]];
  const to = g.type(['float32', 'float32', 'float16']);
  const inputs = [x, scale(g, to, dims, g.integer(-9, -6)), ...(x.type === 'int32' ? [] : [zero(g, x.type, dims)])];
  const bound = (x.bound + 5) / 64;
  const exact = x.exact && (to === 'float32' || x.bound <= 256);
  return g.node(
    'DequantizeLinear',
    inputs,
    { type: to, dims: x.dims, exact, integral: false, bound },
    axis === undefined ? {} : { axis: n(axis) },
  );
}

/** Quantizes and comes back, as exporters write around every node of a quantized model. */
function pair(g) {
  const x = g.take({ types: ['float32'], rank: [1, 4], bound: 200 });
  const type = g.pick(bytes);
  const [s, z] = [scale(g, 'float32', [], g.integer(-5, -2)), zero(g, type)];
  const coded = g.node('QuantizeLinear', [x, s, z], codes(type, x.dims, x.exact));
  return g.node('DequantizeLinear', [coded, s, z], { type: 'float32', dims: x.dims, exact: x.exact, bound: 70 });
}

/** Weights of 4 or 8 bits as constants, in floats, and a product with them. */
function packed(g) {
  const [k, columns] = [g.pick([4, 8, 16, 33]), g.pick([2, 7, 16])];
  const type = g.pick(['int4', 'uint4', 'int8']);
  const total = k * columns;
  const length = type === 'int8' ? total : Math.ceil(total / 2);
  const data = Uint8Array.from({ length }, () => g.integer(0, 255));
  if (type !== 'int8' && total % 2) data[length - 1] &= 15;
  const w = g.constant({
    type,
    dims: [k, columns],
    data: type === 'int8' ? new Int8Array(data.buffer) : data,
    bound: 128,
  });
  if (type !== 'int8') g.values.pop(); // others cannot take it
  const dims = g.chance(0.5) ? [columns] : [];
  const s = scale(g, 'float32', dims, -5);
  const floating = g.node(
    'DequantizeLinear',
    [w, s],
    { type: 'float32', dims: [k, columns], exact: true, bound: 4 },
    dims.length ? { axis: 1n } : {},
  );
  const x = g.bounded(g.take({ types: ['float32'], dims: [g.integer(1, 5), k] }), 20);
  return g.node('MatMul', [x, floating], { type: 'float32', dims: [x.dims[0], columns], bound: k * x.bound * 4 });
}

function matMulInteger(g) {
  const [m, k, columns] = [g.size(), g.size(), g.size()];
  const [ta, tb] = [g.pick(bytes), g.pick(bytes)];
  const [a, b] = [
    g.take({ types: [ta], dims: [m, k], exact: true }),
    g.take({ types: [tb], dims: [k, columns], exact: true }),
  ];
  const zeros = g.chance(0.6) ? [zero(g, ta), ...(g.chance(0.7) ? [zero(g, tb)] : [])] : [];
  return g.node('MatMulInteger', [a, b, ...zeros], exactly('int32', [m, columns], k * 2 ** 16 + 1));
}

function qLinearMatMul(g) {
  const [m, k, columns] = [g.size(), g.size(), g.size()];
  const [ta, tb] = [g.pick(bytes), g.pick(bytes)];
  const [a, b] = [codesOf(g, ta, [m, k]), codesOf(g, tb, [k, columns])];
  const parts = [
    scale(g, 'float32'),
    zero(g, ta),
    b,
    scale(g, 'float32'),
    zero(g, tb),
    scale(g, 'float32', [], -1),
    zero(g, ta),
  ];
  return g.node('QLinearMatMul', [a, ...parts], codes(ta, [m, columns], false));
}

function convOnCodes(op) {
  return (g) => {
    const w = windows(g, { ranks: [1, 2, 2] });
    const group = g.pick([1, 1, 2]);
    const [inside, outside] = [g.integer(1, 8), g.integer(1, 8)];
    const [tx, tw] = op === 'ConvInteger' ? ['uint8', g.pick(bytes)] : [g.pick(bytes), 'int8'];
    const dims = [1, group * inside, ...w.sizes];
    const x = op === 'ConvInteger' ? g.take({ types: [tx], dims, exact: true }) : codesOf(g, tx, dims);
    const kernel = g.fresh({
      type: tw,
      dims: [group * outside, inside, ...w.kernel],
      low: tw === 'int8' ? -100 : 0,
      high: 100,
      constant: g.chance(0.8),
    });
    const out = [1, group * outside, ...w.out];
    const given = { ...w.given, group: n(group) };
    if (op === 'ConvInteger') {
      const zeros = g.chance(0.6) ? [zero(g, tx), ...(g.chance(0.5) ? [zero(g, tw)] : [])] : [];
      return g.node(op, [x, kernel, ...zeros], exactly('int32', out, inside * count(w.kernel) * 2 ** 16), given);
    }
    const each = g.chance(0.4) ? [group * outside] : [];
    const parts = [
      scale(g, 'float32'),
      zero(g, tx),
      kernel,
      scale(g, 'float32', each),
      zero(g, tw, each, 0),
      scale(g, 'float32', [], -2),
      zero(g, tx),
    ];
    const bias = g.chance(0.5) ? [g.fresh({ type: 'int32', dims: [group * outside], low: -500, high: 500 })] : [];
    return g.node(op, [x, ...parts, ...bias], codes(tx, out, false), given);
  };
}

function dynamicQuantize(g) {
  const x = g.take({ types: ['float32'], rank: [1, 4], exact: true, where: (v) => count(v.dims) > 0 });
  if (count(x.dims) === 0) throw new NoRoom();
  const outs = [codes('uint8', x.dims, false), { type: 'float32', dims: [], bound: 1 }, codes('uint8', [], false)];
  return g.node('DynamicQuantizeLinear', [x], outs);
}

export const quantized = {
  QuantizeLinear: quantize,
  DequantizeLinear: dequantize,
  'QuantizeLinear+': pair,
  'MatMul+': { since: 21, make: packed },
  MatMulInteger: matMulInteger,
  QLinearMatMul: qLinearMatMul,
  ConvInteger: convOnCodes('ConvInteger'),
  QLinearConv: convOnCodes('QLinearConv'),
  DynamicQuantizeLinear: dynamicQuantize,
};
