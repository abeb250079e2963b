import { spawnSync } from 'node:child_process';
import { beforeAll, describe, expect, it } from 'vitest';
import { projectRoot } from '../../../scripts/lib/engine.mjs';
import { ours } from '../../fixtures/engine.js';
import { add } from '../../fixtures/models.js';

interface Trial {
  /** The nodes' providers; absent where the session was refused. */
  placement?: string[];
  answer?: number[];
  code?: string;
  message?: string;
  /** What stderr said meanwhile. */
  warned: string;
}

// Warnings of the engine go to stderr, so a process of its own tries every list and says what became of it.
const program = `
  const ort = require(process.argv[1]);
  const bytes = Buffer.from(process.argv[2], 'base64');
  const ones = () => new ort.Tensor('float32', [1, 1]);
  (async () => {
    for (const options of JSON.parse(process.argv[3])) {
      const trial = {};
      try {
        const session = await ort.InferenceSession.create(bytes, options);
        trial.placement = session.placement.map(({ provider }) => provider);
        trial.answer = [...(await session.run({ a: ones(), b: ones() })).c.data];
        await session.release();
      } catch (error) {
        trial.code = error.code;
        trial.message = error.message;
      }
      require('fs').writeSync(2, '\\n=====' + JSON.stringify(trial) + '\\n');
    }
  })();`;

function tried(options: readonly object[]): Trial[] {
  const model = Buffer.from(add()).toString('base64');
  const { stderr } = spawnSync(process.execPath, ['-e', program, projectRoot, model, JSON.stringify(options)], {
    encoding: 'utf8',
  });
  let warned = '';
  const trials: Trial[] = [];
  for (const line of stderr.split('\n').filter(Boolean)) {
    if (line.startsWith('=====')) {
      trials.push({ ...JSON.parse(line.slice(5)), warned: warned.trim() });
      warned = '';
    } else warned += `${line}\n`;
  }
  return trials;
}

/** Names of node-api.md that cannot start on a Linux machine, and why. The first three are onnxruntime-web's. */
const unavailable: [name: string, reason: RegExp][] = [
  [
    'wasm',
    /^no available backend found\. ERR: \[wasm\] backend not found\. 'wasm' is a provider of onnxruntime-web\. This build has 'cpu'(?:, '\w+')*\.$/,
  ],
  [
    'webgl',
    /^no available backend found\. ERR: \[webgl\] backend not found\. 'webgl' is a provider of onnxruntime-web\. This build has 'cpu'(?:, '\w+')*\.$/,
  ],
  [
    'webnn',
    /^no available backend found\. ERR: \[webnn\] backend not found\. 'webnn' is a provider of onnxruntime-web\. This build has 'cpu'(?:, '\w+')*\.$/,
  ],
  ['webgpu', /^no available backend found\. ERR: \[webgpu\] infernode has no provider 'webgpu'\. Use 'cpu'\.$/],
  ['xnnpack', /^no available backend found\. ERR: \[xnnpack\] infernode has no provider 'xnnpack'\. Use 'cpu'\.$/],
  ['qnn', /^no available backend found\. ERR: \[qnn\] infernode has no provider 'qnn'\. Use 'cpu'\.$/],
  ['coreml', /^provider 'coreml' exists only on macOS; this is Linux\. Use 'cpu'\.$/],
  ['dml', /^provider 'dml' exists only on Windows; this is Linux\. Use 'cpu'\.$/],
  ['nnapi', /^provider 'nnapi' exists only on Android; this is Linux\. Use 'cpu'\.$/],
  ['cuda', /^provider 'cuda' cannot start: (this build has no CUDA kernels\. Use 'cpu'\.|there is no NVIDIA driver\. Failed to load shared library: libcuda\.so\.1: .*)$/], // prettier-ignore
  ['tensorrt', /^provider 'tensorrt' cannot start: this build of infernode has no kernels for it\. Use 'cpu'\. \((libnvinfer.* is here\.|Failed to load shared library: libnvinfer.*)\)$/], // prettier-ignore
];
const dropped = (name: string): string =>
  `removing requested execution provider "${name}" from session options because it is not available: backend not found.`;

describe.runIf(ours && process.platform === 'linux')('a provider that cannot start', () => {
  let alone: Trial[], followed: Trial[], strict: Trial[];
  beforeAll(() => {
    const lists = (rest: string[], options = {}) =>
      unavailable.map(([name]) => ({ executionProviders: [name, ...rest], ...options }));
    alone = tried(lists([]));
    followed = tried(lists(['cpu']));
    strict = tried(lists(['cpu'], { providerFallback: false }));
  });

  describe.each(unavailable.map(([name, reason], i) => ({ name, reason, i })))('$name', ({ name, reason, i }) => {
    it('alone is an error that says why', () => {
      expect(alone[i]).toMatchObject({ code: 'PROVIDER_UNAVAILABLE', message: expect.stringMatching(reason) });
    });

    it('makes room for the next, with a warning that says why', () => {
      expect(followed[i]).toMatchObject({ placement: ['cpu'], answer: [2, 2] });
      const { warned } = followed[i]!;
      if (reason.source.includes('backend not found')) expect(warned).toBe(dropped(name));
      else {
        const [head, why] = warned.split('the next in the list takes over: ');
        expect(head).toBe(`[infernode:warning, provider] '${name}' cannot start, `);
        expect(why).toMatch(reason);
      }
    });

    it('makes room for none where the user forbids it', () => {
      expect(strict[i]).toMatchObject({ code: 'PROVIDER_UNAVAILABLE', message: expect.stringMatching(reason) });
    });
  });

  it('is unknown by another name too', () => {
    const [other, none] = tried([{ executionProviders: ['gpu', 'cpu'] }, { executionProviders: ['gpu'] }]);
    expect(other).toMatchObject({ placement: ['cpu'], warned: dropped('gpu') });
    expect(none).toMatchObject({
      code: 'PROVIDER_UNAVAILABLE',
      message: expect.stringMatching(
        /^no available backend found\. ERR: \[gpu\] backend not found\. This build has 'cpu'(?:, '\w+')*\.$/,
      ),
    });
  });
});

describe.runIf(ours && process.arch === 'x64')('INFERNODE_CPU', () => {
  const failure = (value: string): string => {
    const script = `
      const ort = require(process.argv[1]);
      try { ort.InferenceSession.createSync(Buffer.from(process.argv[2], 'base64')); console.log('loaded'); }
      catch (error) { console.log(error.code + ' ' + error.message); }`;
    const model = Buffer.from(add()).toString('base64');
    const env = { ...process.env, INFERNODE_CPU: value };
    const { stdout, stderr } = spawnSync(process.execPath, ['-e', script, projectRoot, model], {
      env,
      encoding: 'utf8',
    });
    return stdout.trim() || stderr;
  };

  it('takes a name of this machine', () => {
    expect(failure('baseline')).toBe('loaded');
    expect(failure('')).toBe('loaded');
  });

  it.each([
    ['neon', /INFERNODE_CPU=neon is a name for ARM processors; this machine has baseline(, \w+)*/],
    ['i8mm', /INFERNODE_CPU=i8mm is a name for ARM processors; this machine has baseline(, \w+)*/],
    [
      'axv2',
      /INFERNODE_CPU=axv2 is not the name of an instruction set; this machine has baseline(, \w+)*\. Did you mean avx2\?/,
    ],
  ])('%s is refused with the names that this machine has', (value, message) => {
    expect(failure(value)).toMatch(message);
  });
});
