import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type * as Infernode from '../../../src/index.js';
import { failureOf, floats, ort, ours } from '../../fixtures/engine.js';
import { oneNode, type TensorInfo } from '../../fixtures/onnx-writer.js';

const { InferenceSession, createBatcher, Tensor, env } = ort as typeof Infernode;
const info = (name: string): TensorInfo => ({ name, type: 'float32', shape: ['n', 2] });
const neg = oneNode('Neg', [info('x')], [info('y')]);
const image = { data: new Uint8Array(12), width: 2, height: 2 };
const misspelt = (object: object): any => object;

describe.runIf(ours)('a misspelt option', () => {
  let heard: any[];
  beforeEach(() => {
    heard = [];
    env.onLog = (message) => heard.push(message.message);
  });
  afterEach(() => {
    delete env.onLog;
    env.logLevel = 'warning';
    vi.restoreAllMocks();
  });

  it.each<[string, (session: any) => unknown, string, string]>([
    ['create', () => InferenceSession.create(neg, misspelt({ memoryLimits: 5 })), 'SessionOptions', 'memoryLimit'],
    ['createSync', () => InferenceSession.createSync(neg, misspelt({ logID: 'a' })), 'SessionOptions', 'logId'],
    ['run', (session) => session.run({ x: floats([1, 2], [1, 2]) }, { timeOut: 5 }), 'RunOptions', 'timeout'],
    ['createBatcher', (session) => createBatcher(session, misspelt({ maxbatch: 3 })), 'BatcherOptions', 'maxBatch'],
    ['fromImage', () => Tensor.fromImage(image, misspelt({ resizeWidth: 1 })), 'FromImageOptions', 'resizedWidth'],
    ['fromImage', () => Tensor.fromImage(image, misspelt({ normalise: {} })), 'FromImageOptions', 'normalize'],
    ['fromImage', () => Tensor.fromImage(image, { norm: misspelt({ means: 1 }) }), 'norm', 'mean'],
    [
      'toImageData',
      async () => (await Tensor.fromImage(image)).toImageData(misspelt({ layout: 'NCHW' })),
      'ToImageOptions',
      'tensorLayout',
    ],
    [
      'env',
      () => ((misspelt(env).onlog = 5), InferenceSession.create(neg).finally(() => delete misspelt(env).onlog)),
      'env',
      'onLog',
    ],
  ])('of %s is named, with what was meant, to env.onLog', async (_, action, what, meant) => {
    const session = await InferenceSession.create(neg);
    await action(session);
    expect(heard).toEqual([expect.stringMatching(new RegExp(`^${what} has no key '\\w+', which is ignored\\. Did you mean '${meant}'\\?$`))]); // prettier-ignore
  });

  it('names an output of preferredOutputLocation that the model lacks', async () => {
    const options = { preferredOutputLocation: { Y: 'cpu', y: 'cpu' } as const };
    await InferenceSession.create(neg, options);
    InferenceSession.createSync(neg, options);
    const message = "'preferredOutputLocation' has 'Y', which is no output and ignored. Did you mean 'y'?";
    expect(heard).toEqual([message]);
    const failure = await failureOf(() =>
      InferenceSession.create(neg, { executionProviders: [{ name: 'cpu', useArena: 'x' as any }] }),
    );
    expect(failure).toMatchObject({ name: 'TypeError', code: 'INVALID_ARGUMENT' });
  });

  it('of ours that is near none lists them', async () => {
    await Tensor.fromImage(image, misspelt({ backgroundColour: 1 }));
    expect(heard[0]).toMatch(
      /^FromImageOptions has no key 'backgroundColour', which is ignored\. The keys are .*'resizedWidth', /,
    );
  });

  it('goes to the session’s own listener, once for each', async () => {
    const own: any[] = [];
    const options = misspelt({ onLog: (message: any) => own.push(message), logId: 'mine', memoryLimits: 5 });
    const session = await InferenceSession.create(neg, options);
    for (let i = 0; i < 3; i++) await session.run({ x: floats([1, 2], [1, 2]) }, misspelt({ timeOuts: 5 }));
    expect(own).toEqual([
      { severity: 'warning', category: 'options', logId: 'mine', message: expect.stringContaining('memoryLimits') },
      { severity: 'warning', category: 'options', logId: 'mine', message: expect.stringContaining('timeOuts') },
    ]);
    expect(heard).toEqual([]);
  });

  it('is not spoken of where errors alone are', async () => {
    const emit = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    env.onLog = undefined;
    await InferenceSession.create(neg, misspelt({ memoryLimitt: 5, logSeverityLevel: 3 }));
    env.logLevel = 'error';
    await InferenceSession.create(neg, misspelt({ memoryLimitt: 5 }));
    await Tensor.fromImage(image, misspelt({ resizWidth: 1 }));
    expect(emit).not.toHaveBeenCalled();
    env.logLevel = 'warning';
    await InferenceSession.create(neg, misspelt({ memoryLimitt: 5 }));
    expect(emit.mock.calls).toMatchObject([
      [expect.stringContaining('memoryLimitt'), { code: 'INFERNODE_UNKNOWN_OPTION' }],
    ]);
  });

  it('of a listener that throws is its own fault', async () => {
    const uncaught: any[] = [];
    const before = process.listeners('uncaughtException');
    process.removeAllListeners('uncaughtException').on('uncaughtException', (error) => uncaught.push(error.message));
    try {
      const onLog = (): never => {
        throw new Error('mine');
      };
      await InferenceSession.create(neg, misspelt({ onLog, memoryLimits: 5 }));
    } finally {
      process.removeAllListeners('uncaughtException');
      for (const each of before) process.on('uncaughtException', each);
    }
    expect(uncaught).toEqual(['mine']);
  });
});

describe.runIf(ours)('a provider that nobody has', () => {
  const said: any[] = [];
  const create = (name: 'create' | 'createSync', executionProviders: any, more = {}) =>
    InferenceSession[name](neg, { executionProviders, onLog: ({ message }) => said.push(message), ...more });

  it.each(['create', 'createSync'] as const)(
    'is named by %s, with what was meant, and the next takes over',
    async (name) => {
      const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
      for (const [given, meant] of [
        ['cdua', 'cuda'],
        ['CUDAExecutionProvider', 'cuda'],
        ['cpuu', 'cpu'],
      ] as const) {
        said.length = 0;
        await create(name, [given, 'cpu']);
        expect(said, given).toEqual([
          `'${given}' is no provider, the next in the list takes over. Did you mean '${meant}'?`,
        ]);
      }
      expect(warn).not.toHaveBeenCalled();
      warn.mockRestore();
    },
  );

  it.each(['create', 'createSync'] as const)(
    'is an error of %s where there is no other, or may be none',
    async (name) => {
      for (const [providers, more] of [
        [['cdua'], {}],
        [['cdua', 'cpu'], { providerFallback: false }],
      ] as const) {
        const error = await failureOf(() => create(name, providers, more));
        expect(error).toMatchObject({
          code: 'PROVIDER_UNAVAILABLE',
          message: expect.stringMatching(/Did you mean 'cuda'\?$/),
        });
      }
    },
  );

  it('has options whose nearest name is told', async () => {
    const error = await failureOf(() => create('create', [{ name: 'cuda', device: 0 }, 'cpu']));
    expect(error.message).toBe("provider 'cuda' has no option 'device'. Did you mean 'deviceId'?");
  });
});
