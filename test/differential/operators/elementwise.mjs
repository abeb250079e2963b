// Operators on each element: of one value, of two that are spread over each other, and of more.
import { arithmetic, exactly, inexact, like, NoRoom, spread, spreads } from '../builder.mjs';
import { everything, floats, highestInteger, integers, isFloat, largest, numeric, signed } from '../numbers.mjs';

const n = BigInt;

/** Rounded functions: the largest input, and what bounds the result of an input's bound. */
const rounded = {
  Acos: [0.9, () => 3],
  Acosh: [20, () => 4, 'positive'],
  Asin: [0.9, () => 1.2],
  Asinh: [100, (b) => b],
  Atan: [100, () => 1.6],
  Atanh: [0.9, () => 1.5],
  Celu: [100, (b) => b + 2],
  Cos: [30, () => 1],
  Cosh: [4, Math.cosh],
  Elu: [100, (b) => b + 2],
  Erf: [100, () => 1],
  Exp: [5, Math.exp],
  Gelu: [100, (b) => b],
  HardSigmoid: [100, () => 1],
  HardSwish: [100, (b) => b],
  LeakyRelu: [100, (b) => b],
  Log: [20, () => 4, 'positive'],
  Mish: [100, (b) => b],
  Reciprocal: [20, () => 1, 'positive'],
  Selu: [100, (b) => 1.8 * b + 2],
  Sigmoid: [100, () => 1],
  Sin: [30, () => 1],
  Sinh: [4, Math.cosh],
  Softplus: [100, (b) => b + 1],
  Softsign: [100, () => 1],
  Sqrt: [20, Math.sqrt, 'positive'],
  Swish: [100, (b) => b, undefined, 24],
  Tan: [1, () => 1.6],
  Tanh: [100, () => 1],
};
const attributes = {
  Celu: (g) => ({ alpha: 0.5 + g.next() }),
  Elu: (g) => ({ alpha: 0.5 + g.next() }),
  Gelu: (g) => ({ approximate: g.pick(['none', 'tanh']) }),
  HardSigmoid: (g) => ({ alpha: 0.1 + 0.2 * g.next(), beta: 0.5 }),
  LeakyRelu: (g) => ({ alpha: 0.01 + 0.5 * g.next() }),
  Swish: (g) => ({ alpha: 0.5 + g.next() }),
};

const functionOf = (op, [limit, bound, positive, since = 1]) => ({
  since,
  make(g) {
    const x = g.bounded(g.take({ types: op === 'Celu' && g.opset < 28 ? ['float32'] : floats }), limit);
    const safe = positive ? g.positive(x) : x;
    const given = g.chance(0.6) ? attributes[op]?.(g) : {};
    return g.node(op, [safe], inexact(safe, bound(Math.max(safe.bound, 1))), given);
  },
});

/** Functions whose results are the same in all engines where the input is. */
const copying = {
  Abs: numeric,
  Neg: [...floats, ...signed],
  Relu: [...floats, ...signed],
  Identity: everything,
  Ceil: floats,
  Floor: floats,
  Round: floats,
  Sign: numeric,
};
const steps = new Set(['Ceil', 'Floor', 'Round', 'Sign']);
const copyOf = (op, types) => (g) => {
  const x = g.take({ types, exact: steps.has(op) || !types.includes('float32') });
  return g.node(op, [x], {
    ...like(x),
    bound: steps.has(op) ? x.bound + 1 : x.bound,
    integral: x.integral || steps.has(op),
  });
};

/** A value to stand beside another: of its type and of dims that spread with its. */
export function beside(g, a, fresh = {}) {
  const there = (value) => spreads(value.dims, a.dims);
  const dims = a.dims.slice(g.chance(0.3) ? g.integer(0, a.dims.length) : 0).map((size) => (g.chance(0.25) ? 1 : size));
  return g.chance(0.75)
    ? g.take({ types: [a.type], where: there, dims: undefined, rank: [0, 5], ...fresh, ...(g.chance(0.5) && { dims }) })
    : g.fresh({ type: a.type, dims, ...fresh });
}

const swap = (g, a, b) => (g.chance(0.5) ? [a, b] : [b, a]);

function binary(op, types, bound) {
  return (g) => {
    const a = g.take({ types, where: (v) => isFloat(v.type) || v.exact });
    const b = beside(g, a, { exact: !isFloat(a.type) });
    const dims = spread(a.dims, b.dims);
    const limit = isFloat(a.type) ? largest[a.type] : Infinity;
    const [x, y] = bound(a.bound, b.bound) > limit ? [g.bounded(a, 4), g.bounded(b, 4)] : [a, b];
    return g.node(op, swap(g, x, y), arithmetic(a.type, dims, bound(x.bound, y.bound), [x, y]));
  };
}

function division(op, types) {
  return (g) => {
    const a = g.take({ types, where: (v) => v.exact || (isFloat(v.type) && op === 'Div') });
    const whole = !isFloat(a.type) || op === 'Mod';
    const b = g.fresh({
      type: a.type,
      dims: a.dims.slice(g.integer(0, a.dims.length)),
      low: 1,
      high: whole ? 5 : 3,
      integral: whole,
    });
    const dims = spread(a.dims, b.dims);
    if (op === 'Div') {
      const from = isFloat(a.type) ? inexact(a, a.bound, dims) : exactly(a.type, dims, a.bound);
      return g.node(op, [a, b], from);
    }
    // A remainder of floats is exact where fmod takes it; of whole numbers it may take either sign.
    const fmod = isFloat(a.type) || g.chance(0.3);
    if (isFloat(a.type) && !a.exact) throw new NoRoom();
    return g.node(op, [a, b], { ...exactly(a.type, dims, 5), integral: a.integral }, { fmod: n(Number(fmod)) });
  };
}

const compare = (op, types) => (g) => {
  const a = g.take({ types, exact: true });
  const b = beside(g, a, { exact: true });
  return g.node(op, swap(g, a, b), exactly('bool', spread(a.dims, b.dims)));
};

const bitwise = (op, types) => (g) => {
  const a = g.take({ types, exact: true });
  const b = beside(g, a, { exact: true });
  const bound = a.type === 'bool' ? 1 : highestInteger(a.type);
  return g.node(op, swap(g, a, b), exactly(a.type, spread(a.dims, b.dims), bound));
};

function many(op, types) {
  return (g) => {
    const first = g.take({ types, where: (v) => isFloat(v.type) || v.exact });
    const list = [first];
    for (let more = g.integer(0, 3); more > 0; more--) {
      const next = beside(g, first, { exact: first.exact && op.startsWith('M') });
      if (spreads(next.dims, spread(...list.map(({ dims }) => dims)))) list.push(next);
    }
    const dims = spread(...list.map((value) => value.dims));
    const limit = list.reduce((sum, { bound }) => sum + bound, 0);
    const bound = op === 'Sum' ? limit : Math.max(...list.map((value) => value.bound));
    if (op === 'Sum') return g.node(op, list, arithmetic(first.type, dims, bound, list));
    const exact = op !== 'Mean' && list.every((value) => value.exact);
    const integral = exact && list.every((value) => value.integral);
    return g.node(op, list, { type: first.type, dims, exact, integral, bound });
  };
}

function clip(g) {
  const x = g.take({ types: numeric, where: (v) => isFloat(v.type) || v.exact });
  const whole = !isFloat(x.type) || x.integral;
  const low = x.type.startsWith('u') ? 0 : whole ? -2 : -1.25;
  const ends = [g.scalar(x.type, low), g.scalar(x.type, whole ? 3 : 0.75)];
  const missing = g.integer(0, 9);
  if (missing === 0) ends.pop();
  if (missing === 1) ends[0] = undefined;
  return g.node('Clip', [x, ...ends], { ...like(x), bound: Math.max(x.bound, 3) });
}

function where(g) {
  const condition = g.take({ types: ['bool'], exact: true });
  const a = g.take({ where: (v) => spreads(v.dims, condition.dims) });
  const b = beside(g, a);
  const dims = spread(condition.dims, a.dims, b.dims);
  const both = { exact: a.exact && b.exact, integral: a.integral && b.integral, bound: Math.max(a.bound, b.bound) };
  return g.node('Where', [condition, ...swap(g, a, b)], { type: a.type, dims, ...both });
}

function power(g) {
  const a = g.take({
    types: [...floats, 'int32', 'int64'],
    where: (v) => isFloat(v.type) || (v.exact && v.bound <= 8),
  });
  if (!isFloat(a.type)) {
    const b = g.fresh({ type: a.type, dims: a.dims.slice(g.integer(0, a.dims.length)), low: 0, high: 3 });
    return g.node('Pow', [a, b], exactly(a.type, spread(a.dims, b.dims), 8 ** 3));
  }
  const small = g.bounded(a, 4);
  if (g.chance(0.4))
    return g.node('Pow', [small, g.scalar(g.pick([a.type, 'int32']), g.pick([1, 2, 3]))], inexact(small, 64));
  const b = g.fresh({
    type: a.type,
    dims: a.dims.slice(g.integer(0, a.dims.length)),
    low: -2,
    high: 2,
    integral: false,
  });
  const base = g.positive(small);
  return g.node('Pow', [base, b], inexact(base, base.bound ** 2, spread(base.dims, b.dims)));
}

function prelu(g) {
  const x = g.take({
    types: [...floats, 'int32', 'int64', 'uint32', 'uint64'],
    where: (v) => isFloat(v.type) || v.exact,
  });
  const dims = x.dims.slice(g.integer(0, x.dims.length)).map((size) => (g.chance(0.4) ? 1 : size));
  const slope = g.fresh({ type: x.type, dims, integral: !isFloat(x.type), low: 0, high: isFloat(x.type) ? 1 : 3 });
  return g.node('PRelu', [x, slope], arithmetic(x.type, x.dims, x.bound * 3, [x, slope]));
}

function threshold(op) {
  return (g) => {
    const types = op === 'Shrink' ? [...floats.slice(0, 3), ...signed] : floats;
    const x = g.take({ types, exact: true, bound: 20 });
    const given = op === 'Shrink' ? { lambd: 1.5, bias: isFloat(x.type) ? 0.5 : 1 } : { alpha: g.pick([0.5, 1]) };
    const out = op === 'Shrink' && isFloat(x.type) ? inexact(x, x.bound + 1) : like(x);
    return g.node(op, [x], out, given);
  };
}

function cast(g) {
  const x = g.take({ types: everything.filter((type) => type !== 'string') });
  const float8 = ['float8e4m3fn', 'float8e5m2'];
  const to = g.pick([
    ...numeric,
    'bool',
    ...(isFloat(x.type) && x.exact && !g.special ? float8 : []),
    ...(isFloat(x.type) ? [] : ['string']),
  ]);
  if (!isFloat(x.type) && !x.exact) throw new NoRoom();
  const { exact, integral } = x;
  if (isFloat(to)) {
    if (x.bound > largest[to]) throw new NoRoom();
    return [to, { type: to, dims: x.dims, exact, integral: integral && x.bound <= 256, bound: x.bound }, x];
  }
  if (!exact) throw new NoRoom();
  const fits = integers.includes(to) && x.bound <= highestInteger(to) && !(to.startsWith('u') && isFloat(x.type));
  if (isFloat(x.type) && integers.includes(to) && !fits) throw new NoRoom(); // the standard leaves it open
  return [
    to,
    exactly(to, x.dims, fits ? x.bound : integers.includes(to) ? highestInteger(to) : Math.min(x.bound, 400)),
    x,
  ];
}

const numbers = {
  float32: 1,
  uint8: 2,
  int8: 3,
  uint16: 4,
  int16: 5,
  int32: 6,
  int64: 7,
  string: 8,
  bool: 9,
  float16: 10,
  float64: 11,
  uint32: 12,
  uint64: 13,
  bfloat16: 16,
  float8e4m3fn: 17,
  float8e5m2: 19,
};
export const elementType = (type) => n(numbers[type]);

function castBack(g) {
  const [to, out, x] = cast(g);
  const made = g.node('Cast', [x], out, { to: elementType(to) });
  if (to.startsWith('float8'))
    return g.node('Cast', [made], exactly(x.type, x.dims, x.bound * 1.2), { to: elementType(x.type) });
  return made;
}

function castLike(g) {
  const [to, out, x] = cast(g);
  if (to.startsWith('float8')) throw new NoRoom();
  return g.node('CastLike', [x, g.take({ types: [to] })], out);
}

function shift(g) {
  const types = integers.filter((type) => type.startsWith('u'));
  const a = g.take({ types, exact: true });
  const b = g.fresh({ type: a.type, dims: a.dims.slice(g.integer(0, a.dims.length)), low: 0, high: 7 });
  return g.node('BitShift', [a, b], exactly(a.type, a.dims, highestInteger(a.type)), {
    direction: g.pick(['LEFT', 'RIGHT']),
  });
}

const test = (op) => (g) => {
  const x = g.take({ types: floats });
  return g.node(op, [x], exactly('bool', x.dims));
};
const not = (op, types) => (g) => {
  const x = g.take({ types, exact: true });
  return g.node(op, [x], exactly(x.type, x.dims, x.type === 'bool' ? 1 : highestInteger(x.type)));
};

export const elementwise = {
  ...Object.fromEntries(Object.entries(rounded).map(([op, rule]) => [op, functionOf(op, rule)])),
  ...Object.fromEntries(Object.entries(copying).map(([op, types]) => [op, copyOf(op, types)])),
  Add: binary('Add', numeric, (a, b) => a + b),
  Sub: binary('Sub', numeric, (a, b) => a + b),
  Mul: binary('Mul', numeric, (a, b) => a * b),
  Div: division('Div', numeric),
  Mod: division('Mod', numeric),
  Equal: compare('Equal', everything),
  ...Object.fromEntries(['Greater', 'GreaterOrEqual', 'Less', 'LessOrEqual'].map((op) => [op, compare(op, numeric)])),
  ...Object.fromEntries(['And', 'Or', 'Xor'].map((op) => [op, bitwise(op, ['bool'])])),
  ...Object.fromEntries(['BitwiseAnd', 'BitwiseOr', 'BitwiseXor'].map((op) => [op, bitwise(op, integers)])),
  ...Object.fromEntries(['Max', 'Min'].map((op) => [op, many(op, numeric)])),
  ...Object.fromEntries(['Sum', 'Mean'].map((op) => [op, many(op, floats)])),
  BitShift: shift,
  BitwiseNot: not('BitwiseNot', integers),
  Not: not('Not', ['bool']),
  IsInf: test('IsInf'),
  IsNaN: test('IsNaN'),
  Clip: clip,
  Where: where,
  Pow: power,
  PRelu: prelu,
  Shrink: threshold('Shrink'),
  ThresholdedRelu: threshold('ThresholdedRelu'),
  Cast: castBack,
  CastLike: castLike,
};
