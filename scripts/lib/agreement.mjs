// How far two engines' answers lie apart.

/** @typedef {{ type: string, dims: number[], data: ArrayLike<number> | ArrayLike<bigint> | string[] }} Plain */

const isFloat = (type) => type === 'float32' || type === 'float64';

/**
 * Largest difference over the largest finite magnitude expected. Infinite when types, dims, integers or strings differ, or when
 * only one of two numbers is finite.
 * @param {Plain | undefined} actual
 * @param {Plain} expected
 */
export function relativeError(actual, expected) {
  if (actual?.type !== expected.type || String(actual.dims) !== String(expected.dims)) return Infinity;
  const [got, want] = [actual.data, expected.data];
  if (got.length !== want.length) return Infinity;
  const float = isFloat(expected.type);
  let worst = 0;
  let largest = 0;
  for (let i = 0; i < want.length; i++) {
    if (float && Number.isFinite(want[i])) largest = Math.max(largest, Math.abs(want[i]));
    if (Object.is(got[i], want[i])) continue;
    if (!float) return Infinity;
    const difference = Math.abs(got[i] - want[i]);
    if (!(difference <= Number.MAX_VALUE)) return Infinity; // also NaN
    if (difference > worst) worst = difference;
  }
  if (worst === 0) return 0;
  return largest === 0 ? worst : worst / largest;
}

/**
 * Length of the difference over the length of what is expected, both Euclidean: how far apart the tensors lie as a whole, where
 * single elements are chaotic. Infinite where relativeError is.
 * @param {Plain | undefined} actual
 * @param {Plain} expected
 */
export function relativeDistance(actual, expected) {
  const error = relativeError(actual, expected);
  if (!isFloat(expected.type) || error === 0 || error === Infinity) return error;
  let apart = 0;
  let length = 0;
  for (let i = 0; i < expected.data.length; i++) {
    if (!Object.is(actual.data[i], expected.data[i])) apart += (actual.data[i] - expected.data[i]) ** 2;
    if (Number.isFinite(expected.data[i])) length += expected.data[i] ** 2;
  }
  return length === 0 ? Math.sqrt(apart) : Math.sqrt(apart / length);
}

/**
 * The largest error over all expected outputs, and where it is.
 * @param {Record<string, Plain>} actual
 * @param {Record<string, Plain>} expected
 * @param {(actual: Plain | undefined, expected: Plain) => number} [measure] of one tensor's error
 */
export function worstError(actual, expected, measure = relativeError) {
  let worst = { error: Object.keys(expected).length ? 0 : Infinity, output: '' };
  for (const [output, value] of Object.entries(expected)) {
    const error = measure(actual[output], value);
    if (error > worst.error) worst = { error, output };
  }
  return worst;
}
