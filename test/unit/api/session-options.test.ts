import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { expectFailure, floats, ort, ours } from '../../fixtures/engine.js';
import { add, addAndMultiply, matmul } from '../../fixtures/models.js';
import { model, node } from '../../fixtures/onnx-writer.js';

const { InferenceSession } = ort;
const bytes = add();
const folder = mkdtempSync(join(tmpdir(), 'infernode-'));
afterAll(() => rmSync(folder, { recursive: true }));

const profiled = (name: string) =>
  InferenceSession.create(addAndMultiply(), { enableProfiling: true, profileFilePrefix: join(folder, name) });

const feeds = { a: floats([1, 2]), b: floats([10, 20]) };

async function works(options: object): Promise<void> {
  const session = await InferenceSession.create(bytes, options);
  expect([...(await session.run(feeds)).c.data]).toEqual([11, 22]);
  await session.release();
}

describe('session options that work', () => {
  it.each<[string, object]>([
    ['none', {}],
    ['the CPU by name', { executionProviders: ['cpu'] }],
    ['the CPU by object', { executionProviders: [{ name: 'cpu', useArena: false }] }],
    ['thread counts', { intraOpNumThreads: 2, interOpNumThreads: 1 }],
    ['thread counts of zero', { intraOpNumThreads: 0, interOpNumThreads: 0 }],
    ['memory switches', { enableCpuMemArena: false, enableMemPattern: false }],
    ['the parallel mode', { executionMode: 'parallel' }],
    ['the sequential mode', { executionMode: 'sequential' }],
    ['logging', { logId: 'test', logSeverityLevel: 3, logVerbosityLevel: 1 }],
    ['nested extra', { extra: { session: { set_denormal_as_zero: '1', intra_op: { allow_spinning: '0' } } } }],
    ['an output location', { preferredOutputLocation: 'cpu' }],
    ['output locations by name', { preferredOutputLocation: { c: 'cpu' } }],
    ['graph capture', { enableGraphCapture: false }],
    ['unknown keys', { nothing: 1, config: { a: 1 } }],
  ])('%s', (_, options) => works(options));

  it.each(['disabled', 'basic', 'extended', 'layout', 'all'])('level %s', (level) =>
    works({ graphOptimizationLevel: level }),
  );

  it('an unknown provider beside a known one, with a warning', async () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    await works({ executionProviders: ['cpu', 'wasm'] }); // as @xenova/transformers asks
    expect(warn.mock.calls.join(' ')).toMatch(/wasm/);
    warn.mockRestore();
  });

  it.runIf(ours)('a misspelt key, with a warning that names the right one', async () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    const emit = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    await works({ intraOpNumThread: 1 });
    expect([...warn.mock.calls, ...emit.mock.calls].join(' ')).toMatch(/intraOpNumThreads/);
    warn.mockRestore();
    emit.mockRestore();
  });

  it.runIf(ours)('a value of undefined for any key', () =>
    works({ intraOpNumThreads: undefined, graphOptimizationLevel: undefined, executionProviders: undefined }),
  );

  it.runIf(ours)('freeDimensionOverrides', async () => {
    const session = await InferenceSession.create(matmul(), { freeDimensionOverrides: { m: 2, k: 3 } });
    expect(session.inputMetadata.map(({ shape }: any) => shape)).toEqual([[2, 3], [3, 'n']]); // prettier-ignore
    await session.release();
  });
});

describe('session options that are refused', () => {
  const wrong: [string, object, any, RegExp][] = [
    [
      'providers that are no array',
      { executionProviders: 'cpu' },
      TypeError,
      /'executionProviders' must be an array, got string\.|eps\.map/,
    ],
    [
      'a provider of null',
      { executionProviders: [null] },
      TypeError,
      /'executionProviders\[0\]' must be a string or an object, got null\.|of null/,
    ],
    ['a provider by another case', { executionProviders: ['CPU'] }, Error, /CPU/],
    ['only unknown providers', { executionProviders: ['wasm'] }, Error, /no available backend found.*wasm/s],
    ['threads of another type', { intraOpNumThreads: '2' }, TypeError, /intraOpNumThreads/],
    ['negative threads', { intraOpNumThreads: -1 }, RangeError, /intraOpNumThreads/],
    ['broken threads', { intraOpNumThreads: 1.5 }, RangeError, /intraOpNumThreads/],
    ['inter-op threads of another type', { interOpNumThreads: '2' }, TypeError, /interOpNumThreads/],
    ['negative inter-op threads', { interOpNumThreads: -1 }, RangeError, /interOpNumThreads/],
    ['broken inter-op threads', { interOpNumThreads: 1.5 }, RangeError, /interOpNumThreads/],
    ['a level of another type', { graphOptimizationLevel: 0 }, TypeError, /graphOptimizationLevel/],
    ['a level that does not exist', { graphOptimizationLevel: 'abc' }, TypeError, /graphOptimizationLevel/],
    ['an arena switch of another type', { enableCpuMemArena: 'yes' }, TypeError, /enableCpuMemArena/],
    ['a pattern switch of another type', { enableMemPattern: 1 }, TypeError, /enableMemPattern/],
    ['a mode of another type', { executionMode: 0 }, TypeError, /executionMode/],
    ['a mode that does not exist', { executionMode: 'random' }, TypeError, /executionMode/],
    ['a log id of another type', { logId: 5 }, TypeError, /logId/],
    ['a log level of another type', { logSeverityLevel: 'high' }, TypeError, /logSeverityLevel/],
    ['a log level past the last', { logSeverityLevel: 5 }, RangeError, /logSeverityLevel/],
    ['profiling without a file', { enableProfiling: true }, TypeError, /profileFilePrefix/],
    ['profiling of another type', { enableProfiling: 1 }, TypeError, /enableProfiling/],
    ['a number in extra', { extra: { session: { a: 1 } } }, TypeError, /'extra\.session\.a' must be a string|string/],
    ['a number for the optimized model', { optimizedModelFilePath: 5 }, TypeError, /optimizedModelFilePath/],
    [
      'an output location that does not exist',
      { preferredOutputLocation: 'moon' },
      TypeError,
      /preferredOutputLocation/,
    ],
    ['external data that is no array', { externalData: 5 }, TypeError, /externalData/],
  ];

  it.each(wrong)('%s', async (_, options, type, message) => {
    await expectFailure(() => InferenceSession.create(bytes, options), { type, message });
  });

  it.runIf(ours)('with a code', async () => {
    for (const [, options, type, message] of wrong) {
      const code = type === Error ? 'PROVIDER_UNAVAILABLE' : 'INVALID_ARGUMENT';
      await expectFailure(() => InferenceSession.create(bytes, options), {
        type,
        message,
        ...(type !== Error && { code }),
      });
    }
  });

  it.runIf(ours)('a cyclic extra, which ends the peer’s process', async () => {
    const extra: Record<string, unknown> = {};
    extra['again'] = extra;
    await expectFailure(() => InferenceSession.create(bytes, { extra }), {
      type: TypeError,
      message: /extra/,
      code: 'INVALID_ARGUMENT',
    });
  });

  it('a provider that cannot start, when the user wants no other', async () => {
    const options = { executionProviders: ['cuda', 'cpu'], providerFallback: false, logSeverityLevel: 4 };
    await expectFailure(() => InferenceSession.create(bytes, options), {
      message: /cuda/i,
      code: 'PROVIDER_UNAVAILABLE',
    });
  });

  it.runIf(ours)('no provider that cannot start where another follows', async () => {
    const emit = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    await works({ executionProviders: ['cuda', 'cpu'], logSeverityLevel: 4 });
    emit.mockRestore();
    warn.mockRestore();
  });
});

describe('files that options ask for', () => {
  const inputs = { a: floats([1, 2, 3, 4], [2, 2]), b: floats([5, 6, 7, 8], [2, 2]) };

  it('the optimized model answers alike', async () => {
    const path = join(folder, 'optimized.onnx');
    const session = await InferenceSession.create(addAndMultiply(), {
      optimizedModelFilePath: path,
      graphOptimizationLevel: 'basic',
    });
    const { sum } = await session.run(inputs);
    await session.release();
    const again = await InferenceSession.create(path);
    expect([...(await again.run(inputs)).sum.data]).toEqual([...sum.data]);
    await again.release();
  });

  it('an optimized model for a folder that is not there is refused', async () => {
    const options = { optimizedModelFilePath: join(folder, 'none', 'model.onnx'), logSeverityLevel: 4 };
    await expectFailure(() => InferenceSession.create(bytes, options), { message: /open file|failed/i, code: 'IO' });
  });

  it('the profile is a trace with each node', async () => {
    const session = await profiled('profile');
    await session.run(inputs);
    const summary = session.endProfiling();
    const files = readdirSync(folder).filter((name) => name.startsWith('profile_'));
    expect(files).toHaveLength(1);
    expect(files[0]).toMatch(/^profile_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d.*\.json$/);
    const events = JSON.parse(readFileSync(join(folder, files[0]!), 'utf8'));
    const operators = events.map((event: any) => event.args?.op_name).filter(Boolean);
    expect(operators).toEqual(expect.arrayContaining(['Add', 'Mul']));
    if (ours) expect(JSON.stringify(summary)).toContain('Mul');
    expect(() => session.endProfiling()).not.toThrow();
    await session.release();
  });

  it('the profile is written when the session goes', async () => {
    const session = await profiled('forgotten');
    await session.run(inputs);
    await session.release();
    const find = () => readdirSync(folder).find((name) => name.startsWith('forgotten_'));
    await vi.waitFor(() => expect(find()).toBeDefined());
    expect(readFileSync(join(folder, find()!), 'utf8')).toContain('Mul');
  });

  it('the profile has the nodes of the branch that ran, before the node that chose it', async () => {
    const x = { name: 'x', type: 'float32', shape: [2] } as const;
    const branch = (op: string) => ({
      nodes: [node(op, ['x'], [`${op}_out`], { name: `the ${op}` })],
      inputs: [],
      outputs: [{ ...x, name: `${op}_out` }],
    });
    const attributes = { then_branch: branch('Neg'), else_branch: branch('Abs') };
    const choice = model({
      nodes: [node('If', ['yes'], ['y'], { name: 'choice', attributes })],
      inputs: [{ name: 'yes', type: 'bool', shape: [] }, x],
      outputs: [{ ...x, name: 'y' }],
    });
    const prefix = join(folder, 'choice');
    const session = await InferenceSession.create(choice, { enableProfiling: true, profileFilePrefix: prefix });
    await session.run({ yes: new ort.Tensor('bool', [true], []), x: floats([1, 2]) });
    session.endProfiling();
    await session.release();
    const file = readdirSync(folder).find((name) => name.startsWith('choice_'))!;
    const events = JSON.parse(readFileSync(join(folder, file), 'utf8'));
    const nodes = events.filter((event: any) => event.cat === 'Node');
    expect(nodes.map((event: any) => event.name)).toEqual(['the Neg_kernel_time', 'choice_kernel_time']);
    const [inner, outer] = nodes;
    expect(inner.ts).toBeGreaterThanOrEqual(outer.ts);
    expect(inner.ts + inner.dur).toBeLessThanOrEqual(outer.ts + outer.dur + 1);
    expect(Object.keys(inner.args)).toEqual(
      expect.arrayContaining(['activation_size', 'input_type_shape', 'node_index', 'op_name', 'output_size', 'output_type_shape', 'parameter_size', 'provider', 'thread_scheduling_stats']), // prettier-ignore
    );
    expect(Object.keys(inner.args.thread_scheduling_stats)).toEqual(['main_thread', 'sub_threads']);
  });

  it('external data comes from memory', async () => {
    const weights = Float32Array.of(100, 200);
    const external = model({
      nodes: [node('Add', ['x', 'w'], ['y'])],
      inputs: [{ name: 'x', type: 'float32', shape: [2] }],
      outputs: [{ name: 'y', type: 'float32', shape: [2] }],
      initializers: [
        { name: 'w', type: 'float32', dims: [2], data: weights, external: { location: 'w.bin', offset: 0, length: 8 } },
      ],
    });
    const data = new Uint8Array(weights.buffer);
    const session = await InferenceSession.create(external, { externalData: [{ path: 'w.bin', data }] });
    expect([...(await session.run({ x: floats([1, 2]) })).y.data]).toEqual([101, 202]);
    await session.release();
    const options = (entry: object) => ({ externalData: [entry], logSeverityLevel: 4 });
    await expectFailure(() => InferenceSession.create(external, options({ path: 'other.bin', data })), {
      message: /w\.bin|not found/,
    });
    await expectFailure(() => InferenceSession.create(external, options({ path: 'w.bin', data: data.subarray(4) })), {
      message: /out of bounds|can not be read in full|too short|bytes/,
    });
    expect(statSync(folder).isDirectory()).toBe(true);
  });
});
