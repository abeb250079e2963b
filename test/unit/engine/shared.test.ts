import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { MessageChannel, Worker } from 'node:worker_threads';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { expectFailure, failureOf, floats, ort } from '../../fixtures/engine.js';
import { add } from '../../fixtures/models.js';
import { product } from './models.js';

const { InferenceSession } = ort;
const root = fileURLToPath(new URL('../../..', import.meta.url));
const MB = 2 ** 20;

/** A worker that opens the session it is given and answers each message by a run of it; 'release' ends its session. */
const program = `
  const { parentPort, workerData } = require('node:worker_threads');
  const { InferenceSession, Tensor } = require(workerData.root);
  const session = InferenceSession.fromShared(workerData.handle);
  parentPort.on('message', async ({ feeds, release }) => {
    if (release) {
      await session.release();
      return parentPort.postMessage('released');
    }
    const tensors = Object.entries(feeds).map(([name, { data, dims }]) => [name, new Tensor('float32', data, dims)]);
    const results = await session.run(Object.fromEntries(tensors));
    parentPort.postMessage(Object.values(results).map(({ data }) => data));
  });
  parentPort.postMessage(session.inputNames);`;

const start = async (handle: unknown): Promise<Worker> => {
  const worker = new Worker(program, { eval: true, workerData: { root, handle } });
  expect((await once(worker, 'message'))[0]).toEqual(expect.any(Array));
  return worker;
};
const ask = async (worker: Worker, message: object): Promise<any> => {
  const answer = once(worker, 'message');
  worker.postMessage(message);
  return (await answer)[0];
};
const ones = { data: Float32Array.of(1, 2), dims: [2] };

describe('a shared session', () => {
  it('serves worker threads and the one that made it, side by side', async () => {
    const session = await InferenceSession.create(add());
    const workers = await Promise.all([1, 2, 3].map(() => start(session.share())));
    for (let i = 0; i < 20; i++) {
      const own = session.run({ a: floats([i, 0]), b: floats([1, 1]) });
      const all = await Promise.all(
        workers.map((worker, w) => ask(worker, { feeds: { a: { data: Float32Array.of(w, i), dims: [2] }, b: ones } })),
      );
      expect(all.map(([c]) => [...c])).toEqual(workers.map((_, w) => [w + 1, i + 2]));
      expect([...(await own).c.data]).toEqual([i + 1, 1]);
    }
    await Promise.all(workers.map((worker) => worker.terminate()));
    await session.release();
  });

  it('lives until the last who opened it releases it, whoever that is', async () => {
    const session = await InferenceSession.create(add());
    const handle = session.share();
    const worker = await start(handle);
    await session.release();
    await expectFailure(() => session.run({ a: floats([1, 1]), b: floats([1, 1]) }), {
      code: 'DISPOSED',
      message: /already disposed/,
    });
    expect([...(await ask(worker, { feeds: { a: ones, b: ones } }))[0]]).toEqual([2, 4]);
    const again = InferenceSession.fromShared(handle);
    expect(await ask(worker, { release: true })).toBe('released');
    expect((await again.run({ a: floats([1, 0]), b: floats([2, 0]) })).c.data[0]).toBe(3);
    await again.release();
    await expectFailure(() => InferenceSession.fromShared(handle), { code: 'DISPOSED', message: /released by all/ });
    await worker.terminate();
  });

  it('is let go by a worker that is ended', async () => {
    const session = await InferenceSession.create(product(1024));
    const held = session.memoryBytes;
    const workers = await Promise.all([1, 2].map(() => start(session.share())));
    await Promise.all(workers.map((worker) => worker.terminate()));
    expect(held).toBeGreaterThanOrEqual(4 * MB);
    const handle = session.share();
    await session.release();
    await expectFailure(() => InferenceSession.fromShared(handle), { code: 'DISPOSED', message: /released by all/ });
  });

  it('gives one handle, plain data that any channel carries', async () => {
    const session = await InferenceSession.create(add(), { preferredOutputLocation: { c: 'cpu-pinned' } });
    const { port1, port2 } = new MessageChannel();
    port1.postMessage(session.share());
    const [handle] = await once(port2, 'message');
    port1.close();
    expect(handle).toEqual(session.share());
    const other = InferenceSession.fromShared(handle);
    const { c } = await other.run({ a: floats([1, 1]), b: floats([1, 1]) });
    expect(c.location).toBe((await session.run({ a: floats([1, 1]), b: floats([1, 1]) })).c.location);
    expect(other.inputNames).toEqual(session.inputNames);
    const foreign = runInNewContext('new Map(entries)', { entries: [...handle.preferredOutputLocation] });
    await InferenceSession.fromShared({ ...handle, preferredOutputLocation: foreign }).release();
    await Promise.all([session.release(), other.release()]);
  });

  it('is refused where the handle is none, or is of another process', async () => {
    for (const wrong of [undefined, null, 'infernode:1:1', {}, { kind: 'infernode.session', id: 1 }]) {
      await expectFailure(() => InferenceSession.fromShared(wrong), { type: TypeError, message: /session\.share\(\)/ });
    }
    const like = { kind: 'infernode.session', preferredOutputLocation: 'cpu' };
    for (const id of ['', 'infernode', 'other:1:1']) {
      await expectFailure(() => InferenceSession.fromShared({ ...like, id }), {
        code: 'INVALID_ARGUMENT',
        message: /no handle/,
      });
    }
    const session = await InferenceSession.create(add());
    const handle = session.share();
    for (const place of ['moon', new Map([['c', 'moon']]), 1]) {
      await expectFailure(() => InferenceSession.fromShared({ ...handle, preferredOutputLocation: place }), {
        type: TypeError,
        message: /session\.share\(\)/,
      });
    }
    for (const id of [`${handle.id}x`, handle.id.replace(/\d+$/, '0'), handle.id.replace(/\d+$/, '99999')]) {
      await expectFailure(() => InferenceSession.fromShared({ ...like, id }), {
        code: 'INVALID_ARGUMENT',
        message: /no handle/,
      });
    }
    const elsewhere = `
      const { InferenceSession } = require(${JSON.stringify(root)});
      try { InferenceSession.fromShared(${JSON.stringify(handle)}); } catch (e) { console.log(e.code, e.message); }`;
    const { stdout } = spawnSync(process.execPath, ['-e', elsewhere], { encoding: 'utf8' });
    expect(stdout).toMatch(/^INVALID_ARGUMENT .*another process.*from the model's file/);
    await session.release();
    expect((await failureOf(() => session.share())).code).toBe('DISPOSED');
  });
});

describe('sessions of the same bytes', () => {
  it('share the weights, and each returns what is its own', () => {
    const megabytes = 32;
    const measured = `
      const { InferenceSession, Tensor } = require(${JSON.stringify(root)});
      const bytes = Buffer.from(require('fs').readFileSync(0));
      const rss = async () => {
        for (let i = 0; i < 4; i++) gc(), await new Promise((resolve) => setTimeout(resolve, 20));
        return process.memoryUsage.rss() / 2 ** 20;
      };
      (async () => {
        const sessions = [];
        const memory = [await rss()];
        for (let i = 0; i < 4; i++) {
          sessions.push(await InferenceSession.create(bytes));
          memory.push(await rss());
        }
        for (const session of sessions.splice(0)) await session.release();
        memory.push(await rss());
        console.log(JSON.stringify(memory));
      })();`;
    const { stdout, stderr } = spawnSync(process.execPath, ['--expose-gc', '-e', measured], {
      input: product(Math.sqrt((megabytes * MB) / 4) | 0),
      encoding: 'utf8',
      maxBuffer: 64 * MB,
    });
    expect(stderr).toBe('');
    const [before, first, second, , fourth, after] = JSON.parse(stdout) as number[];
    expect(first! - before!).toBeLessThan(1.7 * megabytes);
    expect(second! - first!).toBeLessThan(0.3 * megabytes);
    expect(fourth! - first!).toBeLessThan(0.5 * megabytes);
    expect(after! - before!).toBeLessThan(0.5 * megabytes);
  });
});
