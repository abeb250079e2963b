// Whether an answer is the expected one.
import { isTensor } from '../../../scripts/lib/values.mjs';
import { packedBits } from './onnx-data.mjs';

/** Value of a small float with the given exponent and mantissa widths and exponent bias. */
function smallFloat(bits, exponentBits, mantissaBits, bias) {
  const exponent = (bits >> mantissaBits) & ((1 << exponentBits) - 1);
  const mantissa = (bits & ((1 << mantissaBits) - 1)) / 2 ** mantissaBits;
  const sign = (bits >> (exponentBits + mantissaBits)) & 1 ? -1 : 1;
  return sign * (exponent ? (1 + mantissa) * 2 ** (exponent - bias) : mantissa * 2 ** (1 - bias));
}

/** IEEE layout: the highest exponent means infinity or NaN. */
function ieee(bits, exponentBits, mantissaBits, bias) {
  const top = (1 << exponentBits) - 1;
  if (((bits >> mantissaBits) & top) !== top) return smallFloat(bits, exponentBits, mantissaBits, bias);
  if (bits & ((1 << mantissaBits) - 1)) return NaN;
  return (bits >> (exponentBits + mantissaBits)) & 1 ? -Infinity : Infinity;
}

const float = new Float32Array(1);
const floatBits = new Uint32Array(float.buffer);

/** How the bits of each type that JavaScript lacks read as a number. */
const decoders = {
  float16: (bits) => ieee(bits, 5, 10, 15),
  bfloat16: (bits) => ((floatBits[0] = bits << 16), float[0]),
  float8e4m3fn: (bits) => ((bits & 127) === 127 ? NaN : smallFloat(bits, 4, 3, 7)),
  float8e4m3fnuz: (bits) => (bits === 128 ? NaN : smallFloat(bits, 4, 3, 8)),
  float8e5m2: (bits) => ieee(bits, 5, 2, 15),
  float8e5m2fnuz: (bits) => (bits === 128 ? NaN : smallFloat(bits, 5, 2, 16)),
  float8e8m0: (bits) => (bits === 255 ? NaN : 2 ** (bits - 127)),
  float4e2m1: (bits) => smallFloat(bits, 2, 1, 1),
  float6e2m3: (bits) => smallFloat(bits, 2, 3, 1),
  float6e3m2: (bits) => smallFloat(bits, 3, 2, 3),
};

/** The elements of a tensor as numbers, bigints or strings, whatever its storage. */
export function elements({ type, dims, data }) {
  const bits = packedBits[type];
  let list = data;
  if (bits) {
    const size = dims.reduce((a, b) => a * b, 1);
    list = Array.from({ length: size }, (_, i) => {
      const byte = Math.floor((i * bits) / 8);
      return ((data[byte] | (data[byte + 1] << 8)) >> ((i * bits) % 8)) & ((1 << bits) - 1);
    });
  }
  return decoders[type] ? Array.from(list, decoders[type]) : list;
}

const isFloating = (type) => /^(float|bfloat|complex)/.test(type);

/**
 * What is wrong with an answer, or null. Floating-point numbers may differ by atol + rtol * |expected|, NaN equals NaN,
 * everything else must be equal.
 * @param {{ rtol: number, atol: number }} tolerance
 * @param {boolean} [drawn] both are random draws: compare type, dims and statistics
 * @returns {string | null}
 */
export function difference(actual, expected, tolerance, drawn = false, where = '') {
  const at = where && ` ${where}`;
  if (expected === null || actual === null || actual === undefined) {
    return (actual ?? null) === expected ? null : `${at}: got ${kindOf(actual)}, expected ${kindOf(expected)}`;
  }
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual)) return `${at}: got ${kindOf(actual)}, expected a sequence`;
    if (actual.length !== expected.length) return `${at}: ${actual.length} items, expected ${expected.length}`;
    return first(expected, (item, i) => difference(actual[i], item, tolerance, drawn, `${where}[${i}]`));
  }
  if (expected instanceof Map) {
    if (!(actual instanceof Map)) return `${at}: got ${kindOf(actual)}, expected a map`;
    if (actual.size !== expected.size) return `${at}: ${actual.size} entries, expected ${expected.size}`;
    return first([...expected], ([key, value]) => {
      const got = actual.get(key) ?? actual.get(Number(key));
      const equal = typeof value === 'number' ? close(got, value, tolerance) : got === value;
      return equal ? null : `${at}: ${got} under ${key}, expected ${value}`;
    });
  }
  if (!isTensor(expected)) return actual === expected ? null : `${at}: ${actual}, expected ${expected}`;
  if (!isTensor(actual)) return `${at}: got ${kindOf(actual)}, expected a tensor`;
  if (actual.type !== expected.type) return `${at}: type ${actual.type}, expected ${expected.type}`;
  if (String(actual.dims) !== String(expected.dims)) return `${at}: dims [${actual.dims}], expected [${expected.dims}]`;
  return (drawn ? drawDifference : contentDifference)(actual, expected, tolerance, at);
}

/**
 * Two draws from one distribution over values of which each element is 0 or one that the case determines (Bernoulli's ones,
 * Dropout's scaled inputs, masks): where both drew something else than 0 they agree, and the shares of zeros differ by no
 * more than five standard deviations of that difference allow.
 */
function drawDifference(actual, expected, tolerance, at) {
  const got = Array.from(elements(actual), Number);
  const want = Array.from(elements(expected), Number);
  if (got.length !== want.length) return `${at}: ${got.length} elements, expected ${want.length}`;
  const apart = want.findIndex((value, i) => value && got[i] && !close(got[i], value, tolerance));
  if (apart >= 0) return `${at}: drew ${got[apart]} at ${apart}, expected 0 or ${want[apart]}`;
  const count = want.length;
  const share = (list) => list.filter((value) => value !== 0).length / (count || 1);
  const both = (share(got) + share(want)) / 2;
  if (Math.abs(share(got) - share(want)) <= 5 * Math.sqrt((2 * both * (1 - both)) / (count || 1))) return null;
  return `${at}: drew ${share(got)} of ${count} elements, expected about ${share(want)}`;
}

function contentDifference(actual, expected, tolerance, at) {
  const got = elements(actual);
  const want = elements(expected);
  if (got.length !== want.length) return `${at}: ${got.length} elements, expected ${want.length}`;
  const equal = isFloating(expected.type) ? (a, b) => close(a, b, tolerance) : (a, b) => a === b;
  let wrong = 0;
  let example;
  for (let i = 0; i < want.length; i++) {
    if (equal(got[i], want[i])) continue;
    example ??= `${got[i]} at ${i}, expected ${want[i]}`;
    wrong++;
  }
  return wrong ? `${at}: ${wrong} of ${want.length} elements differ: ${example}` : null;
}

const close = (a, b, { rtol, atol }) =>
  a === b || Object.is(a, b) || (Number.isFinite(b) && Math.abs(a - b) <= atol + rtol * Math.abs(b));

const kindOf = (value) =>
  value == null
    ? 'nothing'
    : Array.isArray(value)
      ? 'a sequence'
      : value instanceof Map
        ? 'a map'
        : isTensor(value)
          ? 'a tensor'
          : typeof value;

function first(list, check) {
  for (const [i, item] of list.entries()) {
    const found = check(item, i);
    if (found) return found;
  }
  return null;
}
