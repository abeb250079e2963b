import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { projectRoot } from '../../../scripts/lib/engine.mjs';
import { ours } from '../../fixtures/engine.js';
import { matmul } from '../../fixtures/models.js';

const program = fileURLToPath(new URL('../../fixtures/standalone.mjs', import.meta.url));
const model = matmul();

function runProgram(how: string) {
  const env = { ...process.env, MODEL: Buffer.from(model).toString('base64') };
  return spawnSync(process.execPath, [program, how], { env, encoding: 'utf8', timeout: 60_000 });
}

describe('a process', () => {
  it.each([
    ['returns', 'return'],
    ['calls process.exit', 'exit'],
    ['exits while a run is pending', 'pending'],
    ['released its session', 'release'],
    ['loads the engine twice', 'twice'],
  ])('that %s ends well', (_, how) => {
    for (let i = 0; i < 3; i++) {
      const { status, signal, stdout, stderr } = runProgram(how);
      expect({ status, signal, stderr }).toEqual({ status: 0, signal: null, stderr: '' });
      expect(stdout).toBe('answer 2\n');
    }
  });

  it('that throws ends with the error, not with a signal', () => {
    const { status, signal, stderr } = runProgram('throw');
    expect(signal).toBeNull();
    expect(status).not.toBe(0);
    expect(stderr).toContain('thrown on purpose');
    expect(stderr).not.toContain('mutex lock failed');
  });
});

/** What a CommonJS program prints; `root` is this package's folder in it, `bytes` the model. */
function printed(program: string): string {
  const head = `const root = ${JSON.stringify(projectRoot)}; const bytes = Buffer.from(process.env.MODEL, 'base64');`;
  const body = `
    const answer = async ({ InferenceSession, Tensor }) => {
      const square = new Tensor('float32', new Float32Array(4).fill(1), [2, 2]);
      const { c } = await (await InferenceSession.create(bytes)).run({ a: square, b: square });
      console.log('answer', c.data[0]);
    };
    (async () => { ${program} })();`;
  const env = { ...process.env, MODEL: Buffer.from(model).toString('base64') };
  const { stderr, stdout } = spawnSync(process.execPath, ['-e', head + body], {
    env,
    encoding: 'utf8',
    timeout: 60_000,
  });
  expect(stderr).toBe('');
  return stdout;
}

describe.runIf(ours)('an engine that is not alone in its process', () => {
  it('works beside another copy of itself', () => {
    const program = `
      const first = require(root);
      delete require.cache[require.resolve(root)];
      const second = require(root);
      console.log(first.InferenceSession !== second.InferenceSession);
      for (const each of [first, second, first]) await answer(each);`;
    expect(printed(program)).toBe('true\nanswer 2\nanswer 2\nanswer 2\n');
  });

  it('works where another package was first to have its names in the table of onnxruntime-common', () => {
    const program = `
      const { registerBackend } = require(require.resolve('onnxruntime-common', { paths: [root] }));
      const createInferenceSessionHandler = () => Promise.reject(new Error('the other backend'));
      registerBackend('cpu', { init: () => Promise.resolve(), createInferenceSessionHandler }, 100);
      await answer(require(root));`;
    expect(printed(program)).toBe('answer 2\n');
  });
});

describe('a worker thread', () => {
  const start = (data: object) => new Worker(program, { workerData: { model, ...data } });

  it('has an engine of its own', async () => {
    const answers = [1, 2, 3].map(() => once(start({ how: 'return' }), 'message'));
    expect(await Promise.all(answers)).toEqual([['answer 2'], ['answer 2'], ['answer 2']]);
  });

  it.runIf(ours)('may be ended while it runs, which ends the peer’s process', async () => {
    for (let i = 0; i < 5; i++) {
      const workers = [1, 2, 3, 4].map(() => start({ how: 'forever', size: 128 }));
      await Promise.all(workers.map((worker) => once(worker, 'message')));
      await Promise.all(workers.map((worker) => worker.terminate()));
    }
  });
});
