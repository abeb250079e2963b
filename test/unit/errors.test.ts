import { describe, expect, it } from 'vitest';
import { fromNative, InferenceError, rangeError, typeError } from '../../src/errors.js';

describe('errors', () => {
  it('carry a code and the fields that apply', () => {
    const error = new InferenceError('SHAPE_MISMATCH', 'no', { input: 'x', expected: '[2]' }, { cause: 1 });
    expect(error).toMatchObject({ name: 'Error', code: 'SHAPE_MISMATCH', input: 'x', expected: '[2]', cause: 1 });
    expect(Object.keys(error)).toEqual(['code', 'input', 'expected']);
    expect(error).toBeInstanceOf(Error);
  });

  it('of an abort have the name that the platform uses', () => {
    const nameFor = (cause: unknown) => new InferenceError('ABORTED', 'over', undefined, { cause }).name;
    for (const cause of [undefined, null, 'enough', new Error('enough')]) expect(nameFor(cause)).toBe('AbortError');
    expect(nameFor(new DOMException('late', 'TimeoutError'))).toBe('TimeoutError');
    expect(new InferenceError('ABORTED', 'over', undefined, { timedOut: true }).name).toBe('TimeoutError');
  });

  it('of wrong arguments are TypeError and RangeError with a code', () => {
    expect(typeError('no', { input: 'x' })).toMatchObject({ name: 'TypeError', code: 'INVALID_ARGUMENT', input: 'x' });
    expect(rangeError('no', undefined, 'DISPOSED')).toMatchObject({ name: 'RangeError', code: 'DISPOSED' });
  });

  it('of the addon become InferenceErrors, others stay', () => {
    const made = fromNative({ code: 'IO', message: 'gone', path: '/x', details: ['a', 'b'] });
    expect(made).toBeInstanceOf(InferenceError);
    expect(made).toMatchObject({ code: 'IO', message: 'gone', path: '/x', details: ['a', 'b'] });
    const own = new TypeError('mine');
    expect(fromNative(own)).toBe(own);
    expect(fromNative('text')).toBe('text');
  });
});
