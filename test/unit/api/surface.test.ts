import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it, vi } from 'vitest';
import { projectRoot } from '../../../scripts/lib/engine.mjs';
import { expectFailure, failureOf, floats, ort, ours } from '../../fixtures/engine.js';
import { add } from '../../fixtures/models.js';

const bytes = add();

describe('the package', () => {
  const names = [
    'InferenceSession',
    'TRACE',
    'TRACE_EVENT_BEGIN',
    'TRACE_EVENT_END',
    'TRACE_FUNC_BEGIN',
    'TRACE_FUNC_END',
    'Tensor',
    'env',
    'listSupportedBackends',
    'registerBackend',
  ];

  it('exports what onnxruntime-node exports', () => {
    if (ours) expect(Object.keys(ort)).toEqual(expect.arrayContaining(names));
    else expect(Object.keys(ort).sort()).toEqual(names);
  });

  it('lists its providers', () => {
    const list = ort.listSupportedBackends();
    expect(list).toContainEqual({ name: 'cpu', bundled: true });
    for (const entry of list) expect(entry).toEqual({ name: expect.any(String), bundled: expect.any(Boolean) });
    expect(list.map(({ name }: { name: string }) => name)).not.toContain('null'); // the double is for tests
  });

  it.runIf(ours)('lists devices, if there are any', async () => {
    for (const device of await (ort as unknown as typeof import('../../../src/index.js')).listDevices()) {
      expect(device).toMatchObject({ device: expect.stringMatching(/^[a-z]{1,8}:\d+$/), name: expect.any(String) });
    }
  });

  it.runIf(ours)('is one set of classes by require and by import', () => {
    const root = pathToFileURL(join(projectRoot, 'package.json')).href;
    const script = `
      import { createRequire } from 'node:module';
      import * as all from 'infernode';
      import ort, { Tensor, InferenceSession, env } from 'infernode';
      const cjs = createRequire(${JSON.stringify(root)})('infernode');
      console.log(cjs.Tensor === Tensor, cjs.InferenceSession === InferenceSession, cjs.env === env, ort.Tensor === Tensor, all.Tensor === Tensor);`;
    const out = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
      cwd: projectRoot,
      encoding: 'utf8',
    });
    expect(out.trim()).toBe('true true true true true');
  });

  it.runIf(ours)('makes its tensors of onnxruntime-common’s class', () => {
    const common = createRequire(join(projectRoot, 'package.json'))('onnxruntime-common');
    expect(new ort.Tensor('float32', [1], [1])).toBeInstanceOf(common.Tensor);
  });
});

describe('env', () => {
  it('has what clients read and set', () => {
    expect(ort.env).toMatchObject({ wasm: {}, webgl: {}, webgpu: {} });
    expect(ort.env.versions.common).toEqual(expect.any(String));
    expect(ort.env.versions.node).toEqual(expect.any(String));
    expect(ort.env.versions.web).toBeUndefined();
    ort.env.wasm.proxy = false;
    ort.env.webgpu.powerPreference = 'low-power';
    expect({ ...ort.env }).toHaveProperty('logLevel');
  });

  it('checks the log level', async () => {
    expect(ort.env.logLevel).toBe('warning');
    for (const level of ['verbose', 'info', 'error', 'fatal', 'warning']) {
      ort.env.logLevel = level;
      expect(ort.env.logLevel).toBe(level);
    }
    ort.env.logLevel = undefined;
    expect(ort.env.logLevel).toBe('warning');
    const error = await failureOf(() => {
      ort.env.logLevel = 'loud';
    });
    expect(error.message).toMatch('Unsupported logging level');
  });
});

describe('tracing', () => {
  it('is silent unless asked for', () => {
    const stamp = vi.fn();
    vi.stubGlobal('console', Object.assign(Object.create(console), { timeStamp: stamp })); // vitest's console has none
    ort.TRACE('cpu', 'silent');
    expect(stamp).not.toHaveBeenCalled();
    ort.env.trace = true;
    ort.TRACE('cpu', 'said');
    expect(stamp).toHaveBeenCalledOnce();
    delete ort.env.trace;
    vi.unstubAllGlobals();
  });
});

describe('registered backends', () => {
  it('are checked', async () => {
    expect(await failureOf(() => ort.registerBackend('bad', {}, 1))).toBeInstanceOf(TypeError);
    expect((await failureOf(() => ort.registerBackend('bad', {}, 1))).message).toMatch('not a valid backend');
  });

  it('make the sessions that ask for them', async () => {
    const handler = {
      inputNames: ['in'],
      outputNames: ['out'],
      inputMetadata: [],
      outputMetadata: [],
      startProfiling: vi.fn(),
      endProfiling: vi.fn(),
      dispose: vi.fn(async () => undefined),
      run: vi.fn(async (feeds: any) => ({ out: feeds.in })),
    };
    const backend = { init: vi.fn(async () => undefined), createInferenceSessionHandler: vi.fn(async () => handler) };
    ort.registerBackend('mine', backend, 10);
    const other = { init: async () => undefined, createInferenceSessionHandler: async () => handler };
    expect((await failureOf(() => ort.registerBackend('mine', other, 10))).message).toMatch(/mine/);

    const session = await ort.InferenceSession.create(bytes, { executionProviders: ['mine'] });
    expect(backend.init).toHaveBeenCalledOnce();
    expect(backend.createInferenceSessionHandler).toHaveBeenCalledOnce();
    expect(session.inputNames).toEqual(['in']);
    const { out } = await session.run({ in: floats([1, 2, 3]) });
    expect([...out.data]).toEqual([1, 2, 3]);
    await session.release();
    expect(handler.dispose).toHaveBeenCalledOnce();
  });

  it('start once, however many sessions ask at a time, and are not asked again where they failed', async () => {
    const createInferenceSessionHandler = vi.fn(async () => ({ inputNames: [], outputNames: [] }) as any);
    let started = 0;
    const slow = { init: async () => void (await new Promise(setImmediate), started++), createInferenceSessionHandler };
    ort.registerBackend('slow', slow, 10);
    const create = (name: string): Promise<any> => ort.InferenceSession.create(bytes, { executionProviders: [name] });
    await Promise.all([create('slow'), create('slow'), create('slow')]);
    expect(started).toBe(1);
    expect(createInferenceSessionHandler).toHaveBeenCalledTimes(3);

    const failing = { init: vi.fn(() => Promise.reject(new Error('out of order'))), createInferenceSessionHandler };
    ort.registerBackend('failing', failing, 10);
    for (let i = 0; i < 2; i++) await expectFailure(() => create('failing'), { message: /out of order/ });
    expect(failing.init).toHaveBeenCalledOnce();
  });

  it('that cannot start say why', async () => {
    const backend = {
      init: async () => {
        throw new Error('no such device');
      },
      createInferenceSessionHandler: async () => {
        throw new Error('unreachable');
      },
    };
    ort.registerBackend('broken', backend, 10);
    await expectFailure(() => ort.InferenceSession.create(bytes, { executionProviders: ['broken'] }), {
      message: /no such device/,
    });
  });
});
