// A random graph while it grows. Operators take values that are there, or new ones, and add nodes.
import {
  count,
  encode,
  everything,
  gapless,
  highestInteger,
  isFloat,
  isInteger,
  largest,
  randomNumbers,
} from './numbers.mjs';

/**
 * What is known of a value before it is computed.
 * @typedef {object} Value
 * @property {string} name
 * @property {string} type
 * @property {number[] | undefined} dims undefined where they depend on data
 * @property {'tensor' | 'sequence'} kind
 * @property {boolean} exact whether every right engine computes the same bits
 * @property {boolean} integral whether it holds whole numbers
 * @property {number} bound what no finite element's magnitude exceeds
 */

/** An operator that finds no room in this graph. */
export class NoRoom extends Error {}

const sizes = [1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 11, 13, 16, 17, 33];
const texts = ['', 'a', 'b', 'Ab', 'ba c', 'ä', '日本', 'a,b', '12', '-3', 'x y  z', 'a\nb'];
const largeSizes = [1, 3, 17, 31, 64, 65, 100, 127, 256];

export class Builder {
  nodes = [];
  inputs = [];
  initializers = [];
  feeds = {};
  /** @type {Value[]} */
  values = [];
  #names = 0;
  /** Large ones are there for loops that are split among threads. */
  get mostElements() {
    return this.large ? 60_000 : 3000;
  }

  /** @param {{ opset: number, special: boolean, empty: boolean }} style special: NaN and infinities among the feeds; empty: dims of 0 */
  constructor(seed, style) {
    this.next = randomNumbers(seed);
    Object.assign(this, style(this));
  }

  integer = (low, high) => low + Math.floor(this.next() * (high - low + 1));
  chance = (share) => this.next() < share;
  pick = (list) => list[Math.floor(this.next() * list.length)];

  /** Many operators take bfloat16 from version 22 on. */
  known = (types) => (this.opset < 22 ? types.filter((type) => type !== 'bfloat16') : types);

  /** One of the types, mostly of those that this graph prefers. */
  type(given) {
    const types = this.known(given);
    if (!types.length) throw new NoRoom();
    const preferred = types.filter((type) => this.palette.includes(type));
    return this.pick(preferred.length && this.chance(0.85) ? preferred : types);
  }

  size = () => (this.empty && this.chance(0.12) ? 0 : this.pick(this.large ? largeSizes : sizes));

  /** Dims of a rank from the first to the second. */
  dims([low, high] = [0, 4]) {
    const dims = Array.from({ length: this.integer(low, high) }, this.size);
    while (count(dims) > this.mostElements) dims[dims.indexOf(Math.max(...dims))] = this.integer(1, 3);
    return dims;
  }

  label = (letter) => `${letter}${this.#names++}`;

  /** Numbers of a new value. */
  #numbers(type, length, { low, high, integral }) {
    if (type === 'string') return Array.from({ length }, () => this.pick(texts));
    if (type === 'bool') return Array.from({ length }, () => this.integer(0, 1));
    const special = isFloat(type) && this.special && low === undefined;
    const [from, to] = [low ?? (type.startsWith('u') ? 0 : integral ? -6 : -2), high ?? (integral ? 6 : 2)];
    return Array.from({ length }, () => {
      if (special && this.chance(0.06)) return this.pick([NaN, Infinity, -Infinity]);
      return integral ? this.integer(from, to) : from + (to - from) * this.next();
    });
  }

  /**
   * A new input or constant, whose elements lie between `low` and `high` where those are given.
   * @returns {Value}
   */
  fresh({ type, dims, low, high, integral, constant = this.chance(0.5) }) {
    const whole = !isFloat(type) || (integral ?? this.chance(0.3));
    const wide = isInteger(type) &&
      low === undefined &&
      this.chance(0.15) && [-highestInteger(type), highestInteger(type)];
    const range = wide ? { low: type.startsWith('u') ? 0 : wide[0], high: Math.min(wide[1], 2 ** 53) } : { low, high };
    const data = encode(type, this.#numbers(type, count(dims), { ...range, integral: whole }));
    return this.constant({ type, dims, data, integral: whole, constant, bound: boundOf(type, range, whole) });
  }

  /** A new value of given elements. */
  constant({ type, dims, data, constant = true, integral = true, bound = 1 }) {
    const name = this.label(constant ? 'c' : 'x');
    if (!constant) {
      this.inputs.push({ name, type, shape: dims.map((size) => this.#declared(size)) });
      this.feeds[name] = { type, dims, data };
    } else if (this.chance(0.85)) this.initializers.push({ name, type, dims, data });
    else this.nodes.push({ op: 'Constant', inputs: [], outputs: [name], attributes: { value: { type, dims, data } } });
    return this.#keep({ name, type, dims, exact: true, integral, bound, constant });
  }

  /** A dim as an input says it: its size, or a symbol that stands for it everywhere or here alone. */
  #declared(size) {
    if (!this.symbolic || this.chance(0.4)) return size;
    return this.chance(0.5) ? `n${size}` : this.label('d');
  }

  #keep(value) {
    const kept = { kind: 'tensor', ...value };
    this.values.push(kept);
    return kept;
  }

  /** 64-bit integers that say an operator its axes, sizes or the like. */
  longs = (list, dims = [list.length]) =>
    this.constant({ type: 'int64', dims, data: encode('int64', list), bound: Math.max(0, ...list.map(Math.abs)) });
  scalar = (type, number, dims = []) =>
    this.constant({
      type,
      dims,
      data: encode(type, [number]),
      bound: Math.abs(number),
      integral: Number.isInteger(number),
    });

  /** A value of one of the types, of a rank between two, or of given dims; `where` asks for more of those that are there. */
  take({
    types: given = everything,
    rank = [0, 4],
    dims,
    exact = false,
    where = () => true,
    bound = Infinity,
    ...fresh
  }) {
    const types = this.known(given);
    const fits = (value) =>
      value.kind === 'tensor' &&
      value.dims &&
      types.includes(value.type) &&
      (dims
        ? String(dims) === String(value.dims) && dims.length === value.dims.length
        : value.dims.length >= rank[0] && value.dims.length <= rank[1]) &&
      (!exact || value.exact) &&
      value.bound <= bound &&
      where(value);
    const type = this.type(types);
    const found = this.values.filter(fits);
    const alike = found.filter((value) => value.type === type);
    const among = alike.length ? alike : found;
    if (among.length && this.chance(0.88)) {
      const late = Math.floor(among.length * Math.cbrt(this.next()));
      return among[late];
    }
    const made = this.fresh({ type, dims: dims ?? this.dims(rank), ...fresh });
    if (!fits(made)) throw new NoRoom();
    return made;
  }

  /** A floating value whose magnitude stays below a bound: one that does not is brought there by a node. */
  bounded(value, bound) {
    if (value.bound <= bound) return value;
    if (value.exact && !this.special) {
      const [low, high] = [this.scalar(value.type, -bound), this.scalar(value.type, bound)];
      const clipped = { ...like(value), bound, integral: value.integral && Number.isInteger(bound) };
      if (this.chance(0.5) || bound < 1) return this.node('Clip', [value, low, high], clipped);
    }
    if (bound >= 1) return this.node(this.pick(['Tanh', 'Softsign']), [value], inexact(value, 1));
    const factor = this.scalar(value.type, bound);
    return this.node('Mul', [this.node('Tanh', [value], inexact(value, 1)), factor], inexact(value, bound));
  }

  /** |x| + 1, which is nowhere near 0. */
  positive(value) {
    const small = this.bounded(value, 20);
    const size = this.node('Abs', [small], like(small));
    return this.node('Add', [size, this.scalar(value.type, 1)], inexact(size, size.bound + 1));
  }

  /**
   * Adds a node and gives its outputs: a value where one is described, a list where several are. An output that is
   * undefined is left out, as an input is.
   */
  node(op, inputs, outputs, attributes = {}, domain) {
    const list = Array.isArray(outputs) ? outputs : [outputs];
    for (const output of list) this.#check(output);
    const named = list.map(
      (output) => output && this.#keep({ exact: false, integral: false, bound: 1, ...output, name: this.label('v') }),
    );
    this.nodes.push({
      op,
      inputs: inputs.map((input) => input?.name ?? ''),
      outputs: named.map((output) => output?.name ?? ''),
      attributes,
      ...(domain && { domain }),
    });
    return Array.isArray(outputs) ? named : named[0];
  }

  #check(output) {
    if (!output) return;
    if (isFloat(output.type) && output.bound > largest[output.type]) throw new NoRoom();
    if (output.dims && count(output.dims) > 3 * this.mostElements) throw new NoRoom();
  }
}

function boundOf(type, { low, high }, whole) {
  if (type === 'bool' || type === 'string') return 1;
  return Math.max(Math.abs(low ?? (whole ? 6 : 2)), Math.abs(high ?? (whole ? 6 : 2)));
}

/** The same elements in other dims. */
export const like = ({ type, exact, integral, bound, dims }, others = dims) => ({
  type,
  exact,
  integral,
  bound,
  dims: others,
});
/** Rounded results of a value's type. */
export const inexact = ({ type, dims }, bound, others = dims) => ({ type, dims: others, bound });
/** Results that are the same in all engines. */
export const exactly = (type, dims, bound = 1) => ({ type, dims, exact: true, integral: true, bound });

/** Sums and products of some values: exact where they are whole numbers that the type holds. */
export function arithmetic(type, dims, bound, from) {
  if (!isFloat(type)) return exactly(type, dims, Math.min(bound, type === 'bool' ? 1 : highestInteger(type)));
  const integral = from.every((value) => value.exact && value.integral) && bound <= gapless[type];
  return { type, dims, exact: integral, integral, bound };
}

/** Dims of operands that are spread over each other. */
export function spread(...all) {
  const rank = Math.max(...all.map((dims) => dims.length));
  return Array.from({ length: rank }, (_, i) => {
    const here = all.map((dims) => dims[i - rank + dims.length] ?? 1).filter((size) => size !== 1);
    if (here.some((size) => size !== here[0])) throw new NoRoom();
    return here[0] ?? 1;
  });
}

/** Whether dims can be spread over each other. */
export const spreads = (a, b) =>
  a.every((size, i) => {
    const other = b[i - a.length + b.length] ?? 1;
    return size === other || size === 1 || other === 1;
  });
