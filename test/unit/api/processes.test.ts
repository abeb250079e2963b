import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
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
