import { env } from 'onnxruntime-common';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { runOptionKeys, sessionOptionKeys } from '../../src/options/generated.js';
import { nearestName } from '../../src/options/nearest-name.js';
import { warnMisspelt } from '../../src/options/option-names.js';
import { parseRunOptions } from '../../src/options/run-options.js';
import { parseSessionOptions } from '../../src/options/session-options.js';

const parse = (options: object) => parseSessionOptions(options);

describe('session options', () => {
  it('have defaults', () => {
    expect(parse({}).native).toMatchObject({
      providers: [],
      providerFallback: true,
      intraOpNumThreads: 0,
      interOpNumThreads: 0,
      graphOptimizationLevel: 'all',
      enableCpuMemArena: true,
      enableMemPattern: true,
      executionMode: 'sequential',
      float32MatmulPrecision: 'highest',
      optimizedModelFilePath: '',
      enableProfiling: false,
      profileFilePrefix: '',
      logId: '',
      logSeverityLevel: 2,
      memoryLimit: 0,
      maxConcurrentRuns: 0,
      modelCacheDir: '',
      tuning: 'off',
      freeDimensionOverrides: [],
      externalData: [],
      config: [],
    });
  });

  it('are read as properties of their own, never through the prototype chain', () => {
    const inherited: any = Object.create({ logId: 'inherited', executionMode: 'parallel' });
    inherited.intraOpNumThreads = 2;
    expect(parse(inherited).native).toMatchObject({ logId: '', executionMode: 'sequential', intraOpNumThreads: 2 });
    const polluted = Object.prototype as any;
    polluted.timeout = 5;
    polluted.memoryLimit = 1;
    try {
      expect(parse({}).native.memoryLimit).toBe(0);
      expect(parseRunOptions({ tag: 't' }).native).toMatchObject({ timeout: 0 });
    } finally {
      delete polluted.timeout;
      delete polluted.memoryLimit;
    }
  });

  it('follow env.logLevel', () => {
    env.logLevel = 'error';
    expect(parse({}).native.logSeverityLevel).toBe(3);
    expect(parse({ logSeverityLevel: 0 }).native.logSeverityLevel).toBe(0);
    env.logLevel = 'warning';
  });

  it('turn provider options into text', () => {
    const { providers } = parse({
      executionProviders: [
        'cpu',
        { name: 'cuda', deviceId: 1, gpuMemLimit: 2n ** 40n, enableSkipLayerNorm: true, stream: undefined },
        { name: 'webgpu', forceCpuNodeNames: ['a', 'b'] },
      ],
    }).native;
    expect(providers).toEqual([
      { name: 'cpu', options: [] },
      {
        name: 'cuda',
        options: [
          ['device_id', '1'],
          ['gpu_mem_limit', '1099511627776'],
          ['enable_skip_layer_norm', '1'],
        ],
      },
      { name: 'webgpu', options: [['force_cpu_node_names', 'a,b']] },
    ]);
    expect(() => parse({ executionProviders: [{ name: 'cuda', deviceId: {} }] })).toThrow(
      /executionProviders\[0\]\.deviceId/,
    );
    expect(() => parse({ executionProviders: [{}] })).toThrow(/executionProviders\[0\]\.name/);
  });

  it('flatten extra', () => {
    const extra = { session: { intra_op: { allow_spinning: '0' } }, 'ep.context_enable': '1' };
    expect(parse({ extra }).native.config).toEqual([
      ['session.intra_op.allow_spinning', '0'],
      ['ep.context_enable', '1'],
    ]);
    const shared = { a: '1' };
    expect(parse({ extra: { x: shared, y: shared } }).native.config).toHaveLength(2); // not a cycle
  });

  it('refuse an extra that is nested too deeply', () => {
    let extra: object = {};
    for (let i = 0; i < 100_000; ++i) extra = { a: extra };
    expect(() => parse({ extra })).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', name: 'TypeError' }));
    expect(() => parseRunOptions({ extra })).toThrow("'extra' is nested deeper than 64 levels");
  });

  it('are own properties only', () => {
    expect(parse(Object.create({ executionMode: 'nonsense', extra: 7 })).native).toEqual(parse({}).native);
    const polluted = Object.prototype as Record<string, unknown>;
    polluted['executionMode'] = 'nonsense';
    polluted['name'] = 'cuda';
    try {
      expect(() => parse({})).not.toThrow();
      expect(() => parse({ executionProviders: [{}] as never })).toThrow(
        "'executionProviders[0].name' must be a string",
      );
    } finally {
      delete polluted['executionMode'];
      delete polluted['name'];
    }
  });

  it('take external data in every form', async () => {
    const bytes = Uint8Array.of(1, 2, 3);
    const { native, blobs } = parse({
      externalData: [
        'weights/model.bin',
        { path: 'a', data: bytes },
        { path: 'b', data: bytes.buffer },
        { path: 'c', data: '/elsewhere/c.bin' },
        { path: 'd', data: new Blob([bytes]) },
      ],
    });
    expect(native.externalData).toEqual([
      { path: 'model.bin', data: 'weights/model.bin' },
      { path: 'a', data: bytes },
      { path: 'b', data: bytes },
      { path: 'c', data: '/elsewhere/c.bin' },
      { path: 'd', data: '' },
    ]);
    expect(blobs.map(({ index }) => index)).toEqual([4]);
    expect(() => parse({ externalData: [{ path: 5, data: bytes }] })).toThrow(/externalData\[0\]\.path/);
    expect(() => parse({ externalData: [{ path: 'a', data: 5 }] })).toThrow(/externalData\[0\]\.data/);
    expect(() => parse({ externalData: [5] })).toThrow(/externalData\[0\]/);
  });

  it('check dimension overrides', () => {
    expect(parse({ freeDimensionOverrides: { batch: 1 } }).native.freeDimensionOverrides).toEqual([['batch', 1]]);
    expect(() => parse({ freeDimensionOverrides: { batch: '1' } })).toThrow(TypeError);
    expect(() => parse({ freeDimensionOverrides: { batch: -1 } })).toThrow(RangeError);
    expect(() => parse({ freeDimensionOverrides: 5 })).toThrow(TypeError);
  });

  it('check output locations', () => {
    expect(parse({ preferredOutputLocation: { y: 'gpu-buffer' } }).preferredOutputLocation).toEqual(
      new Map([['y', 'gpu-buffer']]),
    );
    for (const wrong of ['none', 5, { y: 'moon' }, { y: undefined }]) {
      expect(() => parse({ preferredOutputLocation: wrong })).toThrow(/preferredOutputLocation/);
    }
  });

  it('check the signal', () => {
    const { signal } = new AbortController();
    expect(parse({ signal }).signal).toBe(signal);
    expect(() => parse({ signal: true })).toThrow(/signal/);
  });
});

describe('run options', () => {
  it('of an empty object cost nothing', () => {
    expect(parseRunOptions({}).native).toBeUndefined();
    expect(parseRunOptions(undefined).native).toBeUndefined();
  });

  it('are read', () => {
    expect(parseRunOptions({ tag: 't', logSeverityLevel: 1, timeout: 5, extra: { gpu_graph_id: '1' } }).native).toEqual(
      {
        tag: 't',
        logSeverityLevel: 1,
        timeout: 5,
        config: [['gpu_graph_id', '1']],
      },
    );
    expect(parseRunOptions({ terminate: true }).terminate).toBe(true);
  });
});

describe('misspelt keys', () => {
  afterEach(() => vi.restoreAllMocks());

  it.each([
    ['intraOpNumThread', 'intraOpNumThreads'],
    ['intraopnumthreads', 'intraOpNumThreads'],
    ['executionProvider', 'executionProviders'],
    ['executionProivders', 'executionProviders'],
    ['nothing', undefined],
    ['config', undefined],
  ])('%s is close to %s', (key, nearest) => {
    expect(nearestName(key, ['intraOpNumThreads', 'executionProviders', 'logId'])).toBe(nearest);
  });

  it.each([
    ['intra_op_num_threads', 'intraOpNumThreads'],
    ['numThreads', 'intraOpNumThreads'],
    ['providers', 'executionProviders'],
    ['optimizationLevel', 'graphOptimizationLevel'],
    ['cacheDir', 'modelCacheDir'],
    ['abortSignal', 'signal'],
  ])('%s is meant by words of %s', (key, meant) => {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    warnMisspelt([key], sessionOptionKeys, [], 'Options');
    expect(warn.mock.calls.map(([message]) => message)).toEqual([expect.stringContaining(`Did you mean '${meant}'?`)]);
  });

  it('that others use are left to them', () => {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    const theirs = ['device', 'dtype', 'subfolder', 'model_file_name', 'use_external_data_format', 'progress_callback'];
    warnMisspelt([...theirs, 'local_files_only', 'config', 'webgpu'], sessionOptionKeys, runOptionKeys, 'Options');
    expect(warn).not.toHaveBeenCalled();
  });

  it('are named once', () => {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    warnMisspelt(['graphOptimisationLevel'], ['graphOptimizationLevel'], [], 'Options');
    warnMisspelt(['graphOptimisationLevel'], ['graphOptimizationLevel'], [], 'Options');
    warnMisspelt(['tags'], ['tag'], ['tags'], 'Options');
    expect(warn).toHaveBeenCalledOnce();
    expect(warn.mock.calls[0]![0]).toContain("Did you mean 'graphOptimizationLevel'?");
  });
});
