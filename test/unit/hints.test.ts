import { beforeEach, describe, expect, it, vi } from 'vitest';
import { addon, failureOf, InferenceSession, Tensor } from './support/session.js';

let session: any;
const floats = (...values: number[]): any => new Tensor('float32', Float32Array.from(values));
const messageOf = async (action: () => unknown): Promise<string> => (await failureOf(action as any)).message;

beforeEach(async () => {
  addon.reset();
  session = await InferenceSession.create('model.onnx'); // of input 'x' and output 'y'
});

describe('what to do is said', () => {
  it.each<[string, unknown, RegExp]>([
    ['a Promise', Promise.resolve(), /'buffer'\. It is a Promise: await it first\./],
    ['nothing', undefined, /'buffer'\. Got undefined\.$/],
    ['numbers', [1, 2], /'buffer'\. Got Array\.$/],
  ])('of %s for a model', async (_, model, message) => {
    expect(await messageOf(() => InferenceSession.create(model as any))).toMatch(message);
  });

  it.each([
    ['https://localhost/model.onnx', ' It is a URL: give new URL(text), which is fetched.'],
    ['data:text/plain,a', ' It is a URL: give new URL(text), which is fetched.'],
    ['~/model.onnx', ' The shell expands ~, Node.js does not: give os.homedir() and the rest.'],
    ['model.onnx', ''],
  ])('of the path %s that cannot be opened', async (path, hint) => {
    addon.failure = { code: 'IO', message: "File doesn't exist", path };
    const expected = { code: 'IO', path, message: `File doesn't exist${hint}` };
    expect(await failureOf(() => InferenceSession.create(path))).toMatchObject(expected);
    expect(await failureOf(async () => InferenceSession.createSync(path))).toMatchObject(expected);
  });

  it.each([
    ['base64', 'CAg6'.repeat(5000), " It looks like base64: give the bytes, Buffer.from(text, 'base64')."],
    ['hex', '08a0'.repeat(5000), " It looks like hex: give the bytes, Buffer.from(text, 'hex')."],
    ['text', 'ir_version: 8 '.repeat(1000), ''],
  ])('of a model passed as %s, which is cut short', async (_, text, hint) => {
    addon.failure = { code: 'IO', message: `Load model from ${text} failed: Load model ${text} failed.`, path: text };
    const shown =
      hint === '' ? `${text.slice(0, 60)}... (${text.length} characters)` : `a text of ${text.length} characters`;
    expect(await failureOf(() => InferenceSession.create(text))).toMatchObject({
      message: `Load model from ${shown} failed: Load model ${shown} failed.${hint}`,
      path: shown,
    });
  });

  it('of a data: URL passed as text, whose data is not echoed', async () => {
    const text = `data:application/octet-stream;base64,${'CAg6'.repeat(10)}`;
    addon.failure = { code: 'IO', message: `Load model from ${text} failed`, path: text };
    const shown = 'data:application/octet-stream;base64,... (77 characters)';
    expect(await failureOf(() => InferenceSession.create(text))).toMatchObject({
      message: `Load model from ${shown} failed It is a URL: give new URL(text), which is fetched.`,
      path: shown,
    });
  });

  it("of a file's content for its path", async () => {
    addon.failure = { code: 'INVALID_ARGUMENT', message: 'the path holds a null character' };
    const message = 'the path holds a null character. It looks like a file\'s content: read it without an encoding, or give its path.'; // prettier-ignore
    expect(await messageOf(() => InferenceSession.create('\b\u0000onnx'))).toBe(message);
  });

  it('of a name where names are wanted', async () => {
    expect(await messageOf(() => session.run({ x: floats(1) }, 'y'))).toMatch(/'options'\. Give the names of outputs in an array: \['y'\]\.$/); // prettier-ignore
  });

  it.each<[string, unknown[], RegExp]>([
    ['no arguments', [], /^A tensor is made of a type, data and dims: new Tensor\('float32', data, dims\)\.$/],
    ['null', [null], /^A tensor is made of a type/],
    [
      'nested data',
      [
        'float32',
        [
          [1, 2],
          [3, 4],
        ],
        [2, 2],
      ],
      /length\(2\)\. The data is nested: give it flat, .*data\.flat\(Infinity\)/,
    ],
    ['nested integers', ['int64', [[1, 2]], [1, 2]], /The data is nested/],
    ['nested data without a type', [[[1, 2]]], /The data is nested/],
  ])('of a tensor of %s', (_, args, message) => {
    expect(() => new (Tensor as any)(...args)).toThrow(message);
  });

  it.each(['modelCacheDir', 'optimizedModelFilePath', 'profileFilePrefix'])(
    'of ~ and of null characters in %s',
    async (key) => {
      const create = (path: string) =>
        InferenceSession.create('m', { enableProfiling: true, profileFilePrefix: 'p', [key]: path } as any);
      const error = await failureOf(() => create('~/models'));
      expect(error).toBeInstanceOf(TypeError);
      expect(error).toMatchObject({
        code: 'INVALID_ARGUMENT',
        message:
          `Invalid session options: '${key}' begins with '~'. The shell expands ~, Node.js does not: ` +
          "give os.homedir() and the rest. A folder of that name is './~/models'.",
      });
      expect((await failureOf(() => create('models\0'))).message).toBe(`Invalid session options: '${key}' has a null character.`); // prettier-ignore
      await create('./~/models');
      await create('~models');
    },
  );

  it('of a long text for an option, which is cut short', async () => {
    const message = await messageOf(() => InferenceSession.create('m', { executionMode: 'x'.repeat(1000) } as any));
    expect(message).toContain(`got '${'x'.repeat(60)}... (1000 characters)'.`);
  });

  it('of a load that was aborted', async () => {
    addon.failure = { code: 'ABORTED', message: 'the run was cancelled' };
    expect(await messageOf(() => InferenceSession.create('m'))).toBe('The load was aborted.');
  });

  it('of feeds with other names', async () => {
    expect(await messageOf(() => session.run({ picture: floats(1), size: floats(2) }))).toBe(
      "input 'x' is missing in 'feeds'. 'feeds' has 'picture', 'size', the model's inputs are 'x'.",
    );
    expect(await messageOf(() => session.run({}))).toBe("input 'x' is missing in 'feeds'.");
  });

  it.each<[string, unknown, RegExp]>([
    ['a Map', new Map([['x', 1]]), /missing in 'feeds', which is a Map: give Object\.fromEntries\(feeds\)\.$/],
    ['a tensor', floats(1), /got object\. It is a Tensor: give \{ 'x': tensor \}\.$/],
    ['a Promise for a tensor', { x: Promise.resolve() }, / It is a Promise: await it first\.$/],
    ['an array for a tensor', { x: [1] }, / Wrap the Array: new Tensor\(type, data, dims\)\.$/],
    ['a plain object for a tensor', { x: { type: 'float32', data: [1], dims: [1] } }, / Make it with new Tensor\(/],
  ])('of %s for feeds', async (_, feeds, message) => {
    expect(await messageOf(() => session.run(feeds))).toMatch(message);
  });

  it('of arrays for options', async () => {
    expect(await messageOf(() => InferenceSession.create('m', ['cuda'] as any))).toMatch(/an object, got Array/);
    expect(await messageOf(() => session.run({ x: floats(1) }, ['y'], ['y']))).toMatch(/an object, got Array/);
    expect(
      await messageOf(() => InferenceSession.create('m', { modelCacheDir: new URL('file:///tmp') } as any)),
    ).toMatch(/'modelCacheDir' must be a string \(fileURLToPath\(url\), of node:url\), got object/);
  });

  it('of a binding that is run by another session', async () => {
    const other = (await InferenceSession.create('m')) as any;
    const binding = other.createIoBinding().bindInput('x', floats(1));
    expect(await messageOf(() => session.run(binding))).toMatch(/belongs to another session/);
    expect(() => session.runSync(binding)).toThrow(/belongs to another session/);
    await other.run(binding);
  });

  it('of outputs with other names', async () => {
    expect(await messageOf(() => session.run({ x: floats(1) }, ['yy']))).toMatch(/yy\. Did you mean 'y'\?$/);
    expect(await messageOf(() => session.run({ x: floats(1) }, ['logits']))).toMatch(
      /logits\. The model's outputs are 'y'/,
    );
  });

  it('of a tensor that no output is written into, once and as a warning', async () => {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    try {
      for (let i = 0; i < 2; i++) await session.run({ x: floats(1) }, { logit: floats(1) });
      expect(warn.mock.calls.map(([message]) => message)).toEqual([
        expect.stringMatching(/^'fetches' has 'logit', which is no output and ignored\. The model's outputs are 'y'/),
      ]);
    } finally {
      warn.mockRestore();
    }
  });

  it('of providers that there are not', async () => {
    const has = "This build has 'cpu'.";
    for (const create of [InferenceSession.create, InferenceSession.createSync]) {
      addon.failure = {
        code: 'PROVIDER_UNAVAILABLE',
        message: 'no available backend found. ERR: [gpu] backend not found.',
      };
      const load = async (name: string): Promise<unknown> => create('m', { executionProviders: [name] } as any);
      expect(await messageOf(() => load('gpu'))).toBe(
        `no available backend found. ERR: [gpu] backend not found. ${has}`,
      );
      expect(await messageOf(() => load('webnn'))).toContain(` 'webnn' is a provider of onnxruntime-web. ${has}`);
      addon.failure = { code: 'PROVIDER_UNAVAILABLE', message: "provider 'cuda' cannot start" };
      expect(await messageOf(() => load('cuda'))).toBe("provider 'cuda' cannot start");
    }
  });

  it.each<[string, unknown[], RegExp]>([
    ['a type of ONNX', ['float', [1]], /^Unsupported tensor type: float\. Did you mean 'float32'\?$/],
    ['a misspelt type', ['flaot32', [1]], /flaot32\. Did you mean 'float32'\?$/],
    ['a type that is not there', ['quaternion', [1]], /quaternion\. The types are 'float32', 'uint8', /],
    ['doubles', ['float32', Float64Array.of(1)], / Got Float64Array: Float32Array\.from\(data\) converts it\.$/],
    ['floats as integers', ['int64', Float32Array.of(1)], /: BigInt64Array\.from\(data, BigInt\) converts it\.$/],
    [
      'floats as halves',
      ['float16', Float32Array.of(1)],
      / Got Float32Array: give the bits of float16 numbers, or a Float16Array\.$/,
    ],
    [
      'bytes',
      ['float32', Buffer.alloc(4)],
      /bytes, give new Float32Array\(data\.buffer, data\.byteOffset, length\)\.$/,
    ],
    ['a buffer', ['float32', new ArrayBuffer(4)], / Got ArrayBuffer: give new Float32Array\(buffer\)\.$/],
    ['a Promise', ['float32', Promise.resolve()], / It is a Promise: await it first\.$/],
    ['nothing', ['float32', undefined], / No data was given\.$/],
    ['numbers without a type', [[1, 2]], / Name the type first: new Tensor\('float32', data, dims\)\.$/],
  ])('of %s for a tensor', (_, args, message) => {
    expect(() => new Tensor(...(args as [any, any]))).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(message) }),
    );
  });

  it('of a session that is called into being', () => {
    const make = InferenceSession as unknown as new (model: unknown) => unknown;
    for (const model of ['model.onnx', Uint8Array.of(8)]) {
      expect(() => new make(model)).toThrow(/A session is made by await InferenceSession\.create\(model\)/);
    }
  });
});
