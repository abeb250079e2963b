// What options that take one of a few values say of another one: those of the schema, and those of pictures.
import { afterEach, describe, expect, it } from 'vitest';
import { nearestValue } from '../../src/options/nearest-name.js';
import { loadSchema } from '../../scripts/options/schema.mjs';
import { failureOf, ort, ours } from '../fixtures/engine.js';
import { oneNode } from '../fixtures/onnx-writer.js';

interface Option {
  name: string;
  type: string;
  values?: string[];
}
const schema = loadSchema() as Record<'session' | 'run' | 'env', Option[]> & {
  providers: Record<string, { options: Option[] }>;
};
const { InferenceSession, Tensor, env } = ort;
const info = { name: 'x', type: 'float32', shape: [2] } as const;
const neg = oneNode('Neg', [info], [{ ...info, name: 'y' }]);
const locations = ['cpu', 'cpu-pinned', 'texture', 'gpu-buffer', 'ml-tensor'];

const enums = (options: readonly Option[]): [string, string[]][] =>
  options.filter(({ type }) => type === 'enum').map(({ name, values }) => [name, values!]);
/** A value that is none, and which one it is nearest to. */
const misspelt = (value: string): string => `${value.slice(0, -1)}${value.at(-1) === 'x' ? 'y' : 'x'}`;

async function expectListed(action: () => unknown, values: readonly string[], meant: string): Promise<void> {
  const error = await failureOf(action);
  expect(error.code).toBe('INVALID_ARGUMENT');
  for (const value of values) expect(error.message).toContain(value);
  expect(error.message).toMatch(new RegExp(`Did you mean '${meant}'\\?$`));
}

describe.runIf(ours)('an option that takes one of a few values lists them, and the nearest', () => {
  afterEach(() => {
    env.logLevel = 'warning';
  });

  const ofSession = [...enums(schema.session), ['preferredOutputLocation', locations] as [string, string[]]];
  it.each(ofSession)('%s of a session', async (name, values) => {
    for (const value of values)
      await expectListed(() => InferenceSession.create(neg, { [name]: misspelt(value) }), values, value);
    const error = await failureOf(() => InferenceSession.create(neg, { [name]: 'nothing like it' }));
    expect(error).toMatchObject({ name: 'TypeError', expected: `one of '${values.join("', '")}'` });
    expect(error.message).not.toContain('Did you mean');
  });

  it('preferredOutputLocation of one output', async () => {
    const options = { preferredOutputLocation: { y: 'gpu' } };
    await expectListed(() => InferenceSession.create(neg, options), locations, 'gpu-buffer');
  });

  it.each(enums(schema.env))('%s of env', async (name, values) => {
    for (const value of values) {
      await expectListed(() => (env[name] = misspelt(value)), values, value);
      env[name] = value;
      expect(env[name]).toBe(value);
    }
  });

  it('env.logLevel in the words of onnxruntime-common', async () => {
    const error = await failureOf(() => (env.logLevel = 'warn'));
    expect(error).toMatchObject({ name: 'Error', code: 'INVALID_ARGUMENT', actual: 'warn' });
    expect(error.message).toBe(
      "Unsupported logging level: warn. env.logLevel must be one of 'verbose', 'info', 'warning', 'error', 'fatal'. Did you mean 'warning'?",
    );
    expect((await failureOf(() => (env.logLevel = 2))).message).toMatch(/^Unsupported logging level: 2\. /);
    env.logLevel = undefined;
    expect(env.logLevel).toBe('warning');
    expect(structuredClone(env).logLevel).toBe('warning'); // as a worker gets it
  });

  const ofProviders = Object.entries(schema.providers).flatMap(([provider, { options }]) =>
    enums(options).map(([name, values]): [string, string, string[]] => [provider, name, values]),
  );
  const bundled: string[] = ours ? ort.listSupportedBackends().map(({ name }: { name: string }) => name) : [];
  it.each(ofProviders.filter(([provider]) => bundled.includes(provider)))('of %s: %s', async (name, key, values) => {
    for (const value of values) {
      const options = { executionProviders: [{ name, [key]: misspelt(value) }] };
      await expectListed(() => InferenceSession.create(neg, options), values, value);
    }
  });

  it.each(['session.load_model_format', 'session.save_model_format'])('extra %s', async (key) => {
    const options = {
      extra: { [key]: 'onnx' },
      optimizedModelFilePath: key.includes('save') ? 'never.onnx' : undefined,
    };
    await expectListed(() => InferenceSession.create(neg, options), ['ORT', 'ONNX'], 'ONNX');
  });

  const formats = ['RGB', 'RGBA', 'BGR', 'RBG'];
  it.each<[string, string[]]>([
    ['format', formats],
    ['tensorFormat', formats],
    ['tensorLayout', ['NCHW', 'NHWC']],
    ['dataType', ['float32', 'uint8']],
    ['method', ['bilinear', 'nearest']],
    ['fit', ['fill', 'cover']],
  ])('%s of a picture', async (name, values) => {
    const image = { data: new Uint8Array(12), width: 2, height: 2 };
    const last = values.at(-1)!;
    await expectListed(() => Tensor.fromImage(image, { [name]: last.toLowerCase() + '_' }), values, last);
  });

  it.each(['create', 'run'])('logSeverityLevel of %s says what its numbers stand for', async (where) => {
    const session = await InferenceSession.create(neg);
    for (const [logSeverityLevel, type] of [
      ['warning', 'TypeError'],
      [5, 'RangeError'],
    ] as const) {
      const error = await failureOf(() =>
        where === 'create'
          ? InferenceSession.create(neg, { logSeverityLevel })
          : session.run({ x: new Tensor('float32', [1, 2], [2]) }, { logSeverityLevel }),
      );
      expect(error.name).toBe(type);
      expect(error.message).toMatch(/ 0 is 'verbose', 1 is 'info', 2 is 'warning', 3 is 'error', 4 is 'fatal'\.$/);
    }
  });
});

describe('the value that was meant', () => {
  const levels = ['verbose', 'info', 'warning', 'error', 'fatal'];
  it.each([
    ['warn', 'warning'],
    ['err', 'error'],
    ['WARNING', 'warning'],
    ['information', 'info'],
    ['eror', 'error'],
    ['debug', undefined],
    ['', undefined],
    ['w', undefined],
  ])('by %s is %s', (given, meant) => {
    expect(nearestValue(given, levels)).toBe(meant);
  });
});
