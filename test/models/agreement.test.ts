import { describe, expect, it } from 'vitest';
import { relativeDistance, relativeError, worstError } from './agreement.js';

const floats = (...values: number[]) => ({ type: 'float32', dims: [values.length], data: Float32Array.from(values) });

describe('relativeError', () => {
  it('divides the largest difference by the largest magnitude', () => {
    expect(relativeError(floats(1, -8.5), floats(1, -8))).toBeCloseTo(0.0625);
    expect(relativeError(floats(1, 2), floats(1, 2))).toBe(0);
    expect(relativeError(floats(0.25), floats(0))).toBe(0.25);
    expect(relativeError(floats(Infinity, 5), floats(Infinity, 4))).toBe(0.25);
  });

  it('is infinite where no distance is', () => {
    expect(relativeError(undefined, floats(1))).toBe(Infinity);
    expect(relativeError(floats(NaN), floats(1))).toBe(Infinity);
    expect(relativeError(floats(1), floats(NaN))).toBe(Infinity);
    expect(relativeError(floats(1, 1), floats(1))).toBe(Infinity);
    expect(relativeError({ ...floats(1), type: 'float64' }, floats(1))).toBe(Infinity);
    const integer = (value: bigint) => ({ type: 'int64', dims: [1], data: BigInt64Array.of(value) });
    expect(relativeError(integer(2n), integer(3n))).toBe(Infinity);
  });

  it('names the worst output', () => {
    expect(worstError({ a: floats(1), b: floats(3) }, { a: floats(1), b: floats(2) })).toEqual({
      error: 0.5,
      output: 'b',
    });
    expect(worstError({}, {}).error).toBe(Infinity);
  });
});

describe('relativeDistance', () => {
  it('divides the length of the difference by the length of what is expected', () => {
    expect(relativeDistance(floats(3, 4), floats(3, 1))).toBeCloseTo(3 / Math.sqrt(10));
    expect(relativeDistance(floats(Infinity, 5), floats(Infinity, 4))).toBe(0.25);
    expect(relativeDistance(floats(0.25), floats(0))).toBe(0.25);
  });

  it('is infinite where no distance is', () => {
    expect(relativeDistance(floats(NaN), floats(1))).toBe(Infinity);
    expect(relativeDistance(floats(1, 1), floats(1))).toBe(Infinity);
  });
});
