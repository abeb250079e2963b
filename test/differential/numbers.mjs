// Random numbers from a seed, and the element types: what holds them, what they can hold.
import { arrayOf } from '../../scripts/lib/values.mjs';

/** Numbers from 0 up to 1; near seeds give sequences that have nothing in common. */
export function randomNumbers(seed) {
  let state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export const floats = ['float32', 'float64', 'float16', 'bfloat16'];
export const signed = ['int8', 'int16', 'int32', 'int64'];
export const unsigned = ['uint8', 'uint16', 'uint32', 'uint64'];
export const integers = [...signed, ...unsigned];
export const numeric = [...floats, ...integers];
export const everything = [...numeric, 'bool', 'string'];

export const isFloat = (type) => floats.includes(type);
export const isInteger = (type) => integers.includes(type);

/** Half a unit in the last place of numbers near 1. */
export const unit = { float32: 2 ** -24, float64: 2 ** -53, float16: 2 ** -11, bfloat16: 2 ** -8 };
/** The largest of the whole numbers from 0 on that a floating type holds without a gap. */
export const gapless = { float32: 2 ** 24, float64: 2 ** 53, float16: 2 ** 11, bfloat16: 2 ** 8 };
/** What values of a graph stay below, far from what the type cannot hold. */
export const largest = { float32: 1e4, float64: 1e4, float16: 500, bfloat16: 1e4 };
/** What is lost where a number is too small for its type. */
export const smallest = { float32: 2 ** -120, float64: 2 ** -1000, float16: 2 ** -23, bfloat16: 2 ** -120 };

const bitsOf = (type) => Number(/\d+$/.exec(type)[0]);
export const highestInteger = (type) => 2 ** (bitsOf(type) - (type.startsWith('u') ? 0 : 1)) - 1;

const single = new Float32Array(1);
const singleBits = new Uint32Array(single.buffer);

function bfloat16Bits(number) {
  single[0] = number;
  if (Number.isNaN(number)) return 0x7fc0;
  const bits = singleBits[0];
  return ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff;
}

/** The float16 that is nearest to a number, of two the even one. */
function float16Bits(number) {
  if (Number.isNaN(number)) return 0x7e00;
  const sign = number < 0 || Object.is(number, -0) ? 0x8000 : 0;
  const size = Math.abs(number);
  if (size >= 65520) return sign | 0x7c00;
  const exponent = Math.max(-14, Math.floor(Math.log2(size || 2 ** -14)));
  const steps = size / 2 ** (exponent - 10);
  const low = Math.floor(steps);
  const rest = steps - low;
  const rounded = low + (rest > 0.5 || (rest === 0.5 && low % 2 === 1) ? 1 : 0);
  return sign | (rounded + (exponent + 14) * 1024);
}

function fromFloat16(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const mantissa = bits & 1023;
  if (exponent === 31) return mantissa ? NaN : sign * Infinity;
  return sign * (exponent ? (1024 + mantissa) * 2 ** (exponent - 25) : mantissa * 2 ** -24);
}

function fromBfloat16(bits) {
  singleBits[0] = bits << 16;
  return single[0];
}

/** A plain tensor's array from numbers (strings, where the type is that). */
export function encode(type, numbers) {
  if (type === 'string') return numbers;
  if (type === 'float16') return Uint16Array.from(numbers, float16Bits);
  if (type === 'bfloat16') return Uint16Array.from(numbers, bfloat16Bits);
  if (type === 'int64' || type === 'uint64') return arrayOf[type].from(numbers, BigInt);
  return arrayOf[type].from(numbers, Number);
}

/** The numbers of a plain tensor of a floating type. */
export function decode({ type, data }) {
  if (type === 'float16') return Float64Array.from(data, fromFloat16);
  if (type === 'bfloat16') return Float64Array.from(data, fromBfloat16);
  return data;
}

export const count = (dims) => dims.reduce((a, b) => a * b, 1);
