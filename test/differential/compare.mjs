// Whether two answers say the same, and what differs where they do not.
import { decode, isFloat } from './numbers.mjs';

const slack = 4;
const textOf = (value) => (typeof value === 'string' ? JSON.stringify(value) : String(value));
const alike = (a, b, error) =>
  Object.is(a, b) || a === b || (Number.isFinite(a) && Number.isFinite(b) && Math.abs(a - b) <= error);

const bytesOf = ({ buffer, byteOffset, byteLength }) => Buffer.from(buffer, byteOffset, byteLength);
/** Most answers are the same to the last bit, which is seen without reading them as numbers. */
const identical = (a, b) => ArrayBuffer.isView(a) && ArrayBuffer.isView(b) && bytesOf(a).equals(bytesOf(b));

/**
 * @param {object} actual a plain value
 * @param {object} expected
 * @param {number} error what rounding may make of it
 * @returns {string | undefined} how they differ
 */
export function difference(actual, expected, error) {
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual) || actual.length !== expected.length)
      return `${actual?.length} items for ${expected.length}`;
    for (let i = 0; i < expected.length; i++) {
      const found = difference(actual[i], expected[i], error);
      if (found) return `item ${i}: ${found}`;
    }
    return undefined;
  }
  const head = ({ type, dims }) => `${type}[${dims}]`;
  if (!actual || head(actual) !== head(expected)) return `${actual ? head(actual) : 'nothing'} for ${head(expected)}`;
  if (identical(actual.data, expected.data)) return undefined;
  const [got, want] = [decode(actual), decode(expected)];
  const close = isFloat(expected.type)
    ? (a, b) => alike(a, b, slack * error) || (Number.isNaN(a) && Number.isNaN(b))
    : (a, b) => a === b || (error > 0 && Math.abs(Number(a) - Number(b)) <= Math.ceil(error));
  let [differ, first, worst] = [0, -1, 0];
  for (let i = 0; i < want.length; i++) {
    if (close(got[i], want[i])) continue;
    differ++;
    if (first < 0) first = i;
    const apart = Math.abs(Number(got[i]) - Number(want[i]));
    worst = Math.max(worst, Number.isNaN(apart) ? Infinity : apart);
  }
  if (!differ) return undefined;
  const size = isFloat(expected.type) ? `; by ${worst.toPrecision(3)}, ${(slack * error).toPrecision(3)} allowed` : '';
  return `${differ} of ${want.length} elements of ${head(expected)}, first [${first}] ${textOf(got[first])} for ${textOf(want[first])}${size}`;
}
