// What errors and warnings of runs say of what was fed.
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type * as Infernode from '../../../src/index.js';
import { projectRoot } from '../../../scripts/lib/engine.mjs';
import { failureOf, floats, ort, ours, tensor } from '../../fixtures/engine.js';
import { gather } from '../../fixtures/models.js';
import { model, node, oneNode, type TensorInfo } from '../../fixtures/onnx-writer.js';

const { InferenceSession, createBatcher, env } = ort as typeof Infernode;
const info = (name: string, shape: TensorInfo['shape'], type: TensorInfo['type'] = 'float32'): TensorInfo => ({
  name,
  type,
  shape,
});

describe.runIf(ours)('what postMessage made of a tensor or a session, and feeds without names', () => {
  it('are refused with what to do', async () => {
    const session = await InferenceSession.create(oneNode('Neg', [info('x', [2])], [info('y', [2])]));
    const x: any = structuredClone(floats([1, 2]));
    expect(await failureOf(() => session.run({ x }))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(
        /^input 'x': it looks like a tensor that postMessage copied.*: send its type, data and dims/,
      ),
    });
    const copy: any = structuredClone({ handler: {} });
    const shared = await failureOf(async () => InferenceSession.fromShared(copy));
    expect(shared.message).toMatch(/what postMessage makes of a session: send session\.share\(\)\.$/);
    const nameless = await failureOf(() => session.run([floats([1, 2])] as any));
    expect(nameless.message).toMatch(/, got Array\. The model's inputs are 'x'\.$/);
    await session.release();
  });
});

describe.runIf(ours)('an error of a run that was fed nothing', () => {
  it('says which input was empty', async () => {
    const [a, b] = [info('a', ['rows', 'k']), info('b', ['l', 'columns'])];
    const bytes = oneNode('MatMul', [a, b], [info('c', ['rows', 'columns'])]);
    const session = await InferenceSession.create(bytes, { logSeverityLevel: 4 });
    const { message } = await failureOf(() => session.run({ a: floats([], [1, 0]), b: floats([1], [1, 1]) }));
    expect(message).toMatch(
      / The run was fed 'a' float32\[1,0\], 'b' float32\[1,1\]\. 'a' is empty: a dim is 0, which/,
    );
    await session.release();
  });

  it('names no file of its own where an optimized model cannot be saved', async () => {
    const bytes = oneNode('Neg', [info('x', [2])], [info('y', [2])]);
    const failure = await failureOf(() => InferenceSession.create(bytes, { optimizedModelFilePath: 'no/dir/x.onnx' }));
    expect(failure).toMatchObject({
      code: 'IO',
      message: expect.stringMatching(/cannot create no\/dir\/x\.onnx: No such/),
    });
  });
});

describe.runIf(ours)('an error of a node deep in the model says what the run was fed', () => {
  /** c = -(-a) b, whose sizes nothing but a run compares. */
  const products = model({
    nodes: [node('Neg', ['a'], ['n']), node('Neg', ['n'], ['m']), node('MatMul', ['m', 'b'], ['c'], { name: 'deep' })],
    inputs: [info('a', ['rows', 'k']), info('b', ['l', 'columns'])],
    outputs: [info('c', ['rows', 'columns'])],
  });
  const wrong = { a: floats([1, 2], [1, 2]), b: floats([1, 2, 3], [3, 1]) };
  const told = {
    code: 'SHAPE_MISMATCH',
    node: 'deep',
    message: expect.stringMatching(/ The run was fed 'a' float32\[1,2\], 'b' float32\[3,1\]\.$/),
  };
  let session: any;
  beforeAll(async () => {
    session = await InferenceSession.create(products, { logSeverityLevel: 4 });
  });

  const bound = () => {
    const binding = session.createIoBinding();
    return binding.bindInput('a', wrong.a).bindInput('b', wrong.b);
  };

  it.each<[string, () => unknown]>([
    ['run', () => session.run(wrong)],
    ['runSync', () => session.runSync(wrong)],
    ['run of a binding', () => session.run(bound())],
    ['runSync of a binding', () => session.runSync(bound())],
    ['run of a shared session', () => InferenceSession.fromShared(session.share()).run(wrong)],
  ])('%s', async (_, run) => {
    for (let again = 0; again < 2; again++) expect(await failureOf(run)).toMatchObject(told);
  });

  it('run in a worker', async () => {
    const program = `
      const { parentPort, workerData } = require('node:worker_threads');
      const { InferenceSession, Tensor } = require(workerData.root);
      const tensor = (...dims) => new Tensor('float32', new Float32Array(dims[0] * dims[1]), dims);
      InferenceSession.fromShared(workerData.handle).run({ a: tensor(1, 2), b: tensor(3, 1) })
        .catch(({ code, node, message }) => parentPort.postMessage({ code, node, message }));`;
    const worker = new Worker(program, { eval: true, workerData: { root: projectRoot, handle: session.share() } });
    expect((await once(worker, 'message'))[0]).toMatchObject(told);
    await worker.terminate();
  });

  it('a call of a batcher, which hears of its own feeds alone', async () => {
    const lookUp = await InferenceSession.create(
      model({
        nodes: [node('Gather', ['table', 'ids'], ['y'])],
        inputs: [info('ids', ['batch', 'length'], 'int64')],
        outputs: [info('y', ['batch', 'length', 2])],
        initializers: [{ name: 'table', type: 'float32', dims: [10, 2], data: new Float32Array(20) }],
      }),
    );
    const batcher = createBatcher(lookUp, { maxDelayMs: 20 });
    const ids = (...values: bigint[]) => ({ ids: tensor('int64', BigInt64Array.from(values), [1, values.length]) });
    const [good, bad] = await Promise.allSettled([batcher.run(ids(1n, 2n)), batcher.run(ids(1n, 99n))]);
    expect(good.status).toBe('fulfilled');
    const { reason } = bad as PromiseRejectedResult;
    expect(reason).toMatchObject({ code: 'INVALID_ARGUMENT', opType: 'Gather' });
    expect(reason.message).toMatch(/ The run was fed 'ids' int64\[1,2\]\.$/);
  });

  it('also where runs have become so short that they stay on the calling thread', async () => {
    const lookUp = await InferenceSession.create(gather());
    const indices = (...values: bigint[]) => ({ indices: tensor('int64', BigInt64Array.from(values), [2]) });
    for (let i = 0; i < 50; i++) await lookUp.run(indices(0n, 1n));
    const { message } = await failureOf(() => lookUp.run(indices(0n, 7n)));
    expect(message).toMatch(/ The run was fed 'indices' int64\[2\]\.$/);
  });

  it('but none of a run that was ended, nor of feeds that are refused before it', async () => {
    const aborted = await failureOf(() => session.run(wrong, { terminate: true }));
    expect(aborted.message).not.toContain('fed');
    const refused = await failureOf(() => session.run({ ...wrong, a: floats([1]) }));
    expect(refused.message).toMatch(/^Invalid rank for input: a [^]*\([^)]*\)\. Please fix either the inputs\/outputs or the model\.$/); // prettier-ignore
  });
});

describe.runIf(ours)('a run without memory', () => {
  const fill = oneNode('ConstantOfShape', [info('s', ['n'], 'int64')], [info('y', undefined)], { name: 'fill' });
  const sized = (...dims: bigint[]) => ({ s: tensor('int64', BigInt64Array.from(dims), [dims.length]) });
  const less = 'feed less at a time: a smaller batch, shorter sequences, a smaller picture.';

  it('names memoryLimit, what was fed, and what to do', async () => {
    const session = await InferenceSession.create(fill, { memoryLimit: 1 << 20, logSeverityLevel: 4 });
    for (const run of ['run', 'runSync'] as const) {
      const { message, code } = await failureOf(() => session[run](sized(1n << 20n)));
      expect(code).toBe('OUT_OF_MEMORY');
      expect(message).toContain('while 0 of the 1048576 bytes of its memoryLimit are in use.');
      expect(message.endsWith(`The run was fed 's' int64[1]. Raise the session's option 'memoryLimit', or ${less}`)).toBe(true); // prettier-ignore
    }
  });

  it('that the system does not have says what needs less', async () => {
    const session = await InferenceSession.create(fill, { logSeverityLevel: 4 });
    const { message, code } = await failureOf(() => session.run(sized(1n << 50n)));
    expect(code).toBe('OUT_OF_MEMORY');
    expect(message).toMatch(
      / Let fewer runs go at a time \(the option 'maxConcurrentRuns'\), have them keep no memory/,
    );
    expect(message).toContain("extra: { memory: { enable_memory_arena_shrinkage: 'cpu:0' } } of a run");
    expect(message.endsWith(`, or ${less}`)).toBe(true);
  });
});

describe.runIf(ours)('feeds under a name that no input has', () => {
  const sum = oneNode('Add', [info('left', ['n']), info('right', ['n'])], [info('y', ['n'])]);
  const fed = { left: floats([1, 2]), right: floats([3, 4]) };
  const heard: any[] = [];
  const onLog = (message: any): void => void heard.push(message);
  const create = (options: object = { onLog, logId: 'mine' }) => InferenceSession.create(sum, options);
  beforeEach(() => void heard.splice(0));
  afterEach(() => {
    delete env.onLog;
    env.logLevel = 'warning';
    vi.restoreAllMocks();
  });

  it('are ignored with a warning, once in a session’s life, which names the nearest input', async () => {
    const stray = { ...fed, rigth: floats([5]) };
    for (const session of [await create(), await create()]) {
      const { y } = await session.run(stray);
      expect(y!.data).toEqual(Float32Array.of(4, 6));
      await session.run(stray);
      session.runSync({ ...fed, other: 'not even a tensor' } as any);
    }
    const message = "'feeds' has 'rigth', which is no input and ignored. Did you mean 'right'?";
    const once = { severity: 'warning', category: 'run', message, logId: 'mine' };
    expect(heard).toEqual([once, once]);
  });

  it('are all named, with the inputs that there are', async () => {
    await (await create()).run({ ...fed, mask: floats([1]), positions: floats([1]) });
    await (await create()).run({ ...fed, mask: floats([1]) });
    expect(heard.map(({ message }) => message)).toEqual([
      "'feeds' has 'mask', 'positions', which are no inputs and ignored. The model's inputs are 'left', 'right'.",
      "'feeds' has 'mask', which is no input and ignored. The model's inputs are 'left', 'right'.",
    ]);
  });

  it('are heard of by env.onLog, or else as one of Node.js’s warnings', async () => {
    env.onLog = onLog;
    await (await create({})).run({ ...fed, mask: floats([1]) });
    InferenceSession.fromShared((await create({})).share()).runSync({ ...fed, mask: floats([1]) });
    expect(heard).toMatchObject([{ category: 'run' }, { category: 'run' }]);
    delete env.onLog;
    const emit = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    await (await create({})).run({ ...fed, mask: floats([1]) });
    expect(emit.mock.calls).toMatchObject([[expect.stringContaining("'mask'"), { code: 'INFERNODE_UNKNOWN_INPUT' }]]);
  });

  it('are heard of where a batcher reads them', async () => {
    const batcher = createBatcher(await create(), { maxDelayMs: 0 });
    for (let i = 0; i < 2; i++) await batcher.run({ ...fed, mask: floats([1]) });
    expect(heard).toHaveLength(1);
  });

  it('are not spoken of where they are undefined, where an input is missing, or where errors alone are', async () => {
    const session = await create();
    await session.run({ ...fed, mask: undefined } as any);
    expect((await failureOf(() => session.run({ left: fed.left, rigth: fed.right }))).message).toContain('rigth');
    await session.run({ ...fed, mask: floats([1]) }, { logSeverityLevel: 3 });
    await (await create({ onLog, logSeverityLevel: 3 })).run({ ...fed, mask: floats([1]) });
    env.logLevel = 'error';
    await (await create()).run({ ...fed, mask: floats([1]) });
    expect(heard).toEqual([]);
  });
});
