import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { failureOf, floats, ort, ours } from '../../fixtures/engine.js';
import { model, node } from '../../fixtures/onnx-writer.js';
import { heavy, product, rounds, slow } from './models.js';

const { InferenceSession, Tensor } = ort;
const program = fileURLToPath(new URL('churn.mjs', import.meta.url));
const forgetful = fileURLToPath(new URL('forget.mjs', import.meta.url));
const MB = 2 ** 20;

/** Collects garbage until `done` holds; finalizers run between turns of the event loop. */
async function collectUntil(done: () => boolean): Promise<boolean> {
  for (let i = 0; i < 50 && !done(); i++) {
    globalThis.gc!();
    await sleep(10);
  }
  return done();
}

describe('a worker', () => {
  it('may be ended at any moment', async () => {
    for (let round = 0; round < 6; round++) {
      const workers = [1, 2, 3].map((seed) => new Worker(program, { workerData: { seed, model: slow(20) } }));
      await Promise.all(workers.map((worker) => once(worker, 'message')));
      await sleep(20 * Math.random());
      await Promise.all(workers.map((worker) => worker.terminate()));
    }
    // The engine still works for those who are left.
    const session = await InferenceSession.create(slow(2));
    expect((await session.run({ x: floats([1, 0, 0, 1], [2, 2]) })).y.data[0]).toBe(1);
    await session.release();
  });

  it.each(['exit', 'throw', 'reject'])('and its process may end by %s while it works', (how) => {
    const env = { ...process.env, MODEL: Buffer.from(slow(20)).toString('base64') };
    const { signal, stderr, status } = spawnSync(process.execPath, [program, how], { env, encoding: 'utf8', timeout: 60_000 }); // prettier-ignore
    expect({ signal, status }).toEqual({ signal: null, status: how === 'exit' ? 0 : 1 });
    if (how !== 'exit') expect(stderr).toContain('on purpose');
  });
});

describe('runSync without an end', () => {
  const endless = `
    const { InferenceSession, Tensor } = require(${JSON.stringify(fileURLToPath(new URL('../../..', import.meta.url)))});
    const session = InferenceSession.createSync(Buffer.from(process.env.MODEL, 'base64'));
    const feeds = { n: new Tensor('int64', BigInt64Array.of(2n ** 62n), []), x: new Tensor('float32', [1], [1]) };`;
  const env = { ...process.env, MODEL: Buffer.from(rounds(false)).toString('base64') };
  const inWorker = `${endless} require('worker_threads').parentPort.postMessage(''); session.runSync(feeds);`;
  const finish = (program: string) => spawnSync(process.execPath, ['-e', program], { env, encoding: 'utf8', timeout: 30_000 }); // prettier-ignore

  it('ends with its worker', async () => {
    for (let round = 0; round < 3; round++) {
      const worker = new Worker(inWorker, { eval: true, env });
      await once(worker, 'message');
      await sleep(30 * round);
      expect(await worker.terminate()).toBe(1);
    }
  });

  const minutes = `
    const { InferenceSession, Tensor } = require(${JSON.stringify(fileURLToPath(new URL('../../..', import.meta.url)))});
    const session = InferenceSession.createSync(Buffer.from(process.env.MODEL, 'base64'));
    const x = new Tensor('float32', new Float32Array(2000 ** 2), [2000, 2000]);
    require('worker_threads').parentPort.postMessage(''); session.runSync({ x });`;

  it('or with one that would take minutes', async () => {
    const worker = new Worker(minutes, {
      eval: true,
      env: { ...env, MODEL: Buffer.from(slow(2000)).toString('base64') },
    });
    await once(worker, 'message');
    await sleep(30);
    expect(await worker.terminate()).toBe(1);
  });

  it('also where the process may use one processor', (context) => {
    if (spawnSync('taskset', ['-c', '0', 'true']).status !== 0)
      return context.skip('not run: taskset cannot be had here');
    const program = `
      const { Worker } = require('worker_threads');
      const worker = new Worker(${JSON.stringify(minutes)}, { eval: true });
      worker.once('message', () => setTimeout(() => worker.terminate().then(console.log), 30));`;
    const { stdout, stderr } = spawnSync('taskset', ['-c', '0', process.execPath, '-e', program], {
      env: { ...process.env, MODEL: Buffer.from(slow(2000)).toString('base64') },
      encoding: 'utf8',
      timeout: 30_000,
    });
    expect({ stdout, stderr }).toEqual({ stdout: '1\n', stderr: '' });
  });

  it('does not keep process.exit() from ending the process', () => {
    const program = `
      const { Worker } = require('worker_threads');
      const worker = new Worker(${JSON.stringify(inWorker)}, { eval: true });
      worker.once('message', () => setTimeout(() => process.exit(0), 50));`;
    expect(finish(program)).toMatchObject({ status: 0, signal: null, stderr: '' });
  });

  it('ends at a timeout of vm, or its own, also while every thread of the engine has a run', () => {
    const program = `${endless}
      const { runInThisContext } = require('vm');
      globalThis.go = (options) => session.runSync(feeds, options);
      const codeOf = (action) => { try { action(); } catch (error) { console.log(error.code); } };
      codeOf(() => runInThisContext('go()', { timeout: 50 }));
      const controller = new AbortController();
      const runs = Array.from({ length: 70 }, () => session.run(feeds, { signal: controller.signal }).catch(() => 1));
      codeOf(() => go({ timeout: 50 }));
      codeOf(() => runInThisContext('go()', { timeout: 50 }));
      controller.abort();
      Promise.all(runs).then(({ length }) => console.log(length));`;
    expect(finish(program)).toMatchObject({ status: 0, signal: null, stderr: '' });
    expect(finish(program).stdout.trim().split('\n')).toEqual([
      'ERR_SCRIPT_EXECUTION_TIMEOUT',
      'ABORTED',
      'ERR_SCRIPT_EXECUTION_TIMEOUT',
      '70',
    ]);
  });
});

describe('bytes that a model was given as', () => {
  const bytes = (megabytes: number) => {
    const count = (megabytes * MB) / 4;
    const w = { name: 'w', type: 'float32', dims: [count], data: new Float32Array(count) } as const;
    const info = (name: string) => ({ name, type: 'float32', shape: [count] }) as const;
    return model({ nodes: [node('Add', ['x', 'w'], ['y'])], inputs: [info('x')], outputs: [info('y')], initializers: [w] }); // prettier-ignore
  };

  it.runIf(ours)('are not kept twice', async () => {
    const given = bytes(32);
    globalThis.gc!();
    const before = process.memoryUsage().arrayBuffers;
    const session = await InferenceSession.create(given);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(8 * MB);
    expect(given.byteLength).toBeGreaterThan(32 * MB); // the caller's own stay
    await session.release();
  });
});

describe('a session', () => {
  it('knows what it holds, and gives it back', async () => {
    const session = await InferenceSession.create(heavy(4 * MB));
    expect(session.memoryBytes).toBeGreaterThanOrEqual(16 * MB);
    await session.release();
    expect(session.memoryBytes).toBe(0);
  });

  it('counts weights that are packed', async () => {
    const session = await InferenceSession.create(product(1024)); // 4 MB
    expect(session.memoryBytes).toBeGreaterThanOrEqual(4 * MB);
    expect(session.memoryBytes).toBeLessThan(6 * MB);
    await session.release();
    expect(session.memoryBytes).toBe(0);
  });

  it.each([
    ['as it is in the file', () => heavy(8 * MB)], // 32 MB each
    ['packed', () => product(2896)],
  ])('that is forgotten is freed, without anyone asking for a collection: a weight %s', (_, makeModel) => {
    const path = join(mkdtempSync(join(tmpdir(), 'infernode-')), 'model.onnx');
    writeFileSync(path, makeModel());
    const { status, stdout } = spawnSync(process.execPath, [forgetful, path], { encoding: 'utf8', timeout: 60_000 });
    rmSync(dirname(path), { recursive: true });
    expect(status).toBe(0);
    const { sessions, bytes, growth } = JSON.parse(stdout);
    expect(growth).toBeLessThan((sessions * bytes) / 2);
  });

  it('made and released many times leaves the process as it was', async () => {
    const model = heavy(4 * MB); // 16 MB
    const once = async (): Promise<void> => {
      const session = await InferenceSession.create(model);
      await session.run({ x: floats([1]) });
      await session.release();
    };
    for (let i = 0; i < 3; i++) await once();
    globalThis.gc!();
    const before = process.memoryUsage().rss;
    for (let i = 0; i < 10; i++) await once();
    await collectUntil(() => process.memoryUsage().rss - before < 48 * MB);
    expect(process.memoryUsage().rss - before).toBeLessThan(48 * MB); // ten leaks would be 160 MB
  });

  it('leaves nothing behind of what a run gathered in small pieces', async () => {
    const session = await InferenceSession.create(rounds(), { memoryLimit: 200 * MB });
    globalThis.gc!();
    const before = process.memoryUsage().rss;
    const feeds = { n: new Tensor('int64', BigInt64Array.of(2n ** 40n), []), x: floats(new Array(1000).fill(0)) };
    expect(await failureOf(() => session.run(feeds))).toMatchObject({ code: 'OUT_OF_MEMORY' });
    await session.release();
    expect(process.memoryUsage().rss - before).toBeLessThan(60 * MB);
  });

  it('does not keep the process alive', () => {
    const script = `
      const ort = require(${JSON.stringify(fileURLToPath(new URL('../../..', import.meta.url)))});
      ort.InferenceSession.create(Buffer.from(process.env.MODEL, 'base64')).then(() => console.log('made'));`;
    const env = { ...process.env, MODEL: Buffer.from(slow(2)).toString('base64') };
    const { status, stdout } = spawnSync(process.execPath, ['-e', script], { env, encoding: 'utf8', timeout: 30_000 });
    expect({ status, stdout }).toEqual({ status: 0, stdout: 'made\n' });
  });

  it('has its tensors outlive it', async () => {
    const session = await InferenceSession.create(slow(2));
    const tensor = session.allocate('float32', [2]);
    tensor.setData(Float32Array.of(1, 2));
    await session.release();
    expect([...tensor.data]).toEqual([1, 2]);
    tensor.dispose();
  });
});
