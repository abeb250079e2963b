import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { EngineCrash, EngineProcess } from '../../scripts/lib/engine-process.mjs';
import { engineName } from '../../scripts/lib/engine.mjs';
import { available } from '../fixtures/available.js';
import { difference, elements } from './lib/compare.mjs';
import { judgeAll } from './lib/judge.mjs';
import { listCases, readDataSets, suiteFolder } from './lib/suite.mjs';

const tolerance = { rtol: 1e-3, atol: 1e-7 };
const tensor = (type: string, data: any, dims = [data.length]) => ({ type, dims, data });
const floats = (...values: number[]) => tensor('float32', Float32Array.from(values));

describe('difference', () => {
  it('accepts equal, close and NaN numbers', () => {
    expect(difference(floats(1, NaN, 100.05), floats(1, NaN, 100), tolerance)).toBeNull();
    expect(difference(floats(-Infinity, 0), floats(-Infinity, -0), tolerance)).toBeNull();
  });

  it.each([
    ['another number', floats(1.01), floats(1)],
    ['a number for NaN', floats(0), floats(NaN)],
    ['NaN for a number', floats(NaN), floats(0)],
    ['a finite number for infinity', floats(3), floats(Infinity)],
    ['the other infinity', floats(-Infinity), floats(Infinity)],
    ['another type', tensor('float64', Float64Array.of(1)), floats(1)],
    ['another shape', tensor('float32', Float32Array.of(1, 2), [1, 2]), floats(1, 2)],
    ['an integer off by one', tensor('int64', BigInt64Array.of(1000001n)), tensor('int64', BigInt64Array.of(1000000n))],
    ['another string', tensor('string', ['a']), tensor('string', ['b'])],
    ['a shorter sequence', [floats(1)], [floats(1), floats(2)]],
    ['another item', [floats(1), floats(3)], [floats(1), floats(2)]],
    ['nothing', undefined, floats(1)],
    ['something for an absent optional', floats(1), null],
    ['another map value', new Map([['a', 1]]), new Map([['a', 2]])],
  ])('refuses %s', (_, actual, expected) => {
    expect(difference(actual, expected, tolerance)).toBeTypeOf('string');
  });

  describe('of random draws', () => {
    const drawn = (actual: number[], expected: number[]) =>
      difference(floats(...actual), floats(...expected), tolerance, true);
    const half = Array.from({ length: 200 }, (_, i) => (i % 2) * (i + 1));
    const otherHalf = half.map((_, i) => ((i + 1) % 2) * (i + 1));

    it('accepts other draws of the same distribution', () => {
      expect(drawn(otherHalf, half)).toBeNull();
      expect(drawn([], [])).toBeNull();
      expect(drawn([0], [5])).toBeNull();
    });
    it('refuses another count', () => expect(drawn([1], [1, 1])).toBeTypeOf('string'));
    it('refuses a value that the case cannot draw', () => expect(drawn([1], [2])).toContain('expected 0 or 2'));
    it('refuses other shares of zeros', () => {
      expect(drawn(half.map(() => 0), half)).toContain('expected about 0.5'); // prettier-ignore
      expect(drawn(half.map((_, i) => i + 1), half)).toContain('drew 1 of 200'); // prettier-ignore
    });
  });
});

describe('elements', () => {
  it.each([
    ['float16', Uint16Array.of(0x3c00, 0xc000, 0x7c00, 0x0001), [1, -2, Infinity, 2 ** -24]],
    ['bfloat16', Uint16Array.of(0x3f80, 0xc000, 0x7f80), [1, -2, Infinity]],
    ['float8e4m3fn', Uint8Array.of(0x38, 0xb8, 0x7e, 0x7f), [1, -1, 448, NaN]],
    ['float8e4m3fnuz', Uint8Array.of(0x40, 0x80), [1, NaN]],
    ['float8e5m2', Uint8Array.of(0x3c, 0x7c, 0x7b), [1, Infinity, 57344]],
    ['float8e5m2fnuz', Uint8Array.of(0x40, 0x80), [1, NaN]],
    ['float8e8m0', Uint8Array.of(127, 128, 255), [1, 2, NaN]],
  ])('decodes %s', (type, data, expected) => {
    expect(Array.from(elements(tensor(type, data)))).toEqual(expected);
  });

  it('unpacks types narrower than a byte, low bits first', () => {
    expect(elements(tensor('uint4', Uint8Array.of(0x21, 0xf3), [3]))).toEqual([1, 2, 3]);
    expect(elements(tensor('uint2', Uint8Array.of(0b11100100), [4]))).toEqual([0, 1, 2, 3]);
    expect(elements(tensor('float4e2m1', Uint8Array.of(0xf2), [2]))).toEqual([1, -6]);
    expect(elements(tensor('float6e2m3', Uint8Array.of(0x1f, 0x88, 0x80), [4]))).toEqual([7.5, -0, 1, -0]);
  });
});

describe('judging', () => {
  it('reads every data file of the suite', async (context) => {
    const cases = listCases(await available(context, 'the conformance suite', suiteFolder));
    for (const item of cases) expect(readDataSets(item).length, item.name).toBeGreaterThan(0);
  });

  it('fails a case whose expected answer is changed', async (context) => {
    const cases = listCases(await available(context, 'the conformance suite', suiteFolder));
    const original = cases.find(({ name }) => name === 'test_relu')!;
    const folder = await mkdtemp(join(tmpdir(), 'infernode-'));
    try {
      for (const entry of await readdir(original.folder, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile()) continue;
        const bytes = await readFile(join(entry.parentPath ?? entry.path, entry.name));
        if (entry.name === 'output_0.pb') bytes[bytes.length - 1]! ^= 0x40; // the last number's sign and exponent byte
        const set = join(folder, 'test_data_set_0');
        await mkdir(set, { recursive: true });
        await writeFile(join(entry.name.endsWith('.pb') ? set : folder, entry.name), bytes);
      }
      const changed = { ...original, folder };
      const [right, wrong] = await judgeAll([original, changed], { engine: engineName(), jobs: 1 });
      expect(right!.outcome).toBe('passed');
      expect(wrong!).toMatchObject({ outcome: 'failed', reason: expect.stringContaining('wrong answer') });
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('reports the end of an engine process to whoever waits for it', async () => {
    const engine = await EngineProcess.start(engineName());
    engine.kill(); // before it is asked, so that it cannot answer
    const waiting = engine.time(0, 1);
    await expect(waiting).rejects.toBeInstanceOf(EngineCrash);
    await expect(engine.create('x.onnx')).rejects.toBeInstanceOf(EngineCrash);
  });
});
