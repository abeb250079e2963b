import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MessageChannel, Worker } from 'node:worker_threads';
import { runInNewContext } from 'node:vm';
import { afterAll, describe, expect, it } from 'vitest';
import { expectFailure, failureOf, floats, ort, ours, tensor } from '../../fixtures/engine.js';
import { add } from '../../fixtures/models.js';
import { product, rounds } from './models.js';

const { InferenceSession } = ort;
const root = fileURLToPath(new URL('../../..', import.meta.url));
const MB = 2 ** 20;

/** A worker that opens the session it is given and answers each message by a run of it; 'release' ends its session. */
const program = `
  const { parentPort, workerData } = require('node:worker_threads');
  const { InferenceSession, Tensor } = require(workerData.root);
  const session = InferenceSession.fromShared(workerData.handle);
  parentPort.on('message', async ({ feeds, release, leave, exit, holds }) => {
    if (leave) return session.release(), parentPort.postMessage('leaves');
    if (exit) process.exit();
    if (holds) return parentPort.postMessage(session.memoryBytes);
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

  it('has one copy of weights, plans and kept memory, whichever worker runs', async () => {
    const session = await InferenceSession.create(product(512));
    const loaded = session.memoryBytes;
    const feeds = { x: { data: new Float32Array(64 * 512), dims: [64, 512] } };
    const first = await start(session.share());
    expect(await ask(first, { holds: true })).toBe(loaded);
    await ask(first, { feeds });
    const held = await ask(first, { holds: true });
    expect(held).toBeGreaterThan(loaded); // a plan of these shapes, and the memory of its run
    for (let i = 0; i < 2; i++) {
      const other = await start(session.share());
      expect(await ask(other, { holds: true })).toBe(held); // before a run of its own, and after
      await ask(other, { feeds });
      expect(await ask(other, { holds: true })).toBe(held);
      await other.terminate();
    }
    expect(session.memoryBytes).toBe(held);
    await first.terminate();
    await session.release();
  });

  it.runIf(ours)('leaves nothing behind of workers that are ended by the hundred', () => {
    const ends = `
      const { Worker } = require('node:worker_threads');
      const { InferenceSession } = require(${JSON.stringify(root)});
      const program = ${JSON.stringify(program)};
      (async () => {
        const session = await InferenceSession.create(Buffer.from(require('fs').readFileSync(0)));
        const workerData = { root: ${JSON.stringify(root)}, handle: session.share() };
        const x = { data: new Float32Array(256 * 512), dims: [256, 512] };
        const end = async () => {
          const worker = new Worker(program, { eval: true, workerData });
          await new Promise((resolve) => worker.once('message', resolve));
          worker.postMessage({ feeds: { x } }); // it is ended while it runs, or thereabouts
          await new Promise(setImmediate);
          await worker.terminate();
        };
        const memory = [];
        for (let part = 0; part < 2; part++) {
          for (let i = 0; i < 50; i++) await end();
          for (let i = 0; i < 4; i++) gc(), await new Promise((resolve) => setTimeout(resolve, 20));
          memory.push((process.memoryUsage.rss() - process.memoryUsage().heapTotal) / 2 ** 20);
        }
        await session.release();
        console.log(JSON.stringify(memory));
      })();`;
    const { stdout, stderr } = spawnSync(process.execPath, ['--expose-gc', '-e', ends], {
      input: product(512),
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    const [fifty, hundred] = JSON.parse(stdout) as number[];
    expect(hundred! - fifty!).toBeLessThan(10); // what one run holds, 1 MB, would come to 50
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

  it('is let go by a worker that is ended while its release waits for its turn', async () => {
    ort.env.maxConcurrentRuns = 1;
    const endless = await InferenceSession.create(rounds(false));
    const session = await InferenceSession.create(add());
    const worker = await start(session.share());
    const controller = new AbortController();
    const feeds = { n: tensor('int64', BigInt64Array.of(2n ** 62n), []), x: floats([1]) };
    const run = failureOf(() => endless.run(feeds, { signal: controller.signal }));
    expect(await ask(worker, { leave: true })).toBe('leaves');
    await worker.terminate();
    controller.abort();
    expect(await run).toMatchObject({ code: 'ABORTED' });
    const handle = session.share();
    await session.release();
    await expectFailure(() => InferenceSession.fromShared(handle), { code: 'DISPOSED', message: /released by all/ });
    ort.env.maxConcurrentRuns = 0;
    await endless.release();
    await (await InferenceSession.create(add())).release(); // a load tells the engine
    delete ort.env.maxConcurrentRuns;
  });

  it('is over when a worker that ends was the last, though the one that made it is still held', async () => {
    for (const end of ['terminate', 'exit']) {
      const session = await InferenceSession.create(add());
      const handle = session.share();
      const worker = await start(handle);
      await session.release();
      if (end === 'terminate') await worker.terminate();
      else {
        worker.postMessage({ exit: true });
        await once(worker, 'exit');
      }
      await expectFailure(() => InferenceSession.fromShared(handle), { code: 'DISPOSED', message: /released by all/ });
      expect(session.handler).toBeDefined(); // it is held here
    }
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
  const megabytes = 40; // malloc keeps smaller blocks that were freed
  const folder = mkdtempSync(join(tmpdir(), 'infernode-shared-'));
  const path = join(folder, 'model.onnx'); // what comes through a pipe leaves memory that a session would take
  writeFileSync(path, product(Math.sqrt((megabytes * MB) / 4) | 0));
  afterAll(() => rmSync(folder, { recursive: true }));
  const finish = (program: string): string => {
    const { stdout, stderr } = spawnSync(process.execPath, ['--expose-gc', '-e', program], { encoding: 'utf8' });
    expect(stderr).toBe('');
    return stdout;
  };

  it('share the weights, and each returns what is its own', () => {
    const measured = `
      const { InferenceSession, Tensor } = require(${JSON.stringify(root)});
      const bytes = require('fs').readFileSync(${JSON.stringify(path)});
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
        for (const session of sessions) await session.release();
        memory.push(process.memoryUsage.rss() / 2 ** 20); // of no collection: the objects are still here
        console.log(JSON.stringify(memory), sessions.length);
      })();`;
    const stdout = finish(measured);
    const [, text, count] = /^(\[.*\]) (\d+)$/m.exec(stdout)!;
    expect(count).toBe('4');
    const [before, first, second, , fourth, after] = JSON.parse(text!) as number[];
    expect(first! - before!).toBeGreaterThan(0.8 * megabytes); // the engine's own, packed
    expect(first! - before!).toBeLessThan(1.7 * megabytes);
    expect(second! - first!).toBeLessThan(0.3 * megabytes);
    expect(fourth! - first!).toBeLessThan(0.5 * megabytes);
    expect(after! - before!).toBeLessThan(0.5 * megabytes);
  });

  it('share them across workers, of one SharedArrayBuffer', () => {
    const each = `
      const { parentPort, workerData } = require('node:worker_threads');
      const { InferenceSession } = require(${JSON.stringify(root)});
      (async () => {
        globalThis.session = await InferenceSession.create(new Uint8Array(workerData));
        gc();
        parentPort.on('message', () => {}).postMessage('made');
      })();`;
    const measured = `
      const { Worker } = require('node:worker_threads');
      require(${JSON.stringify(root)}).env; // the main thread uses no session
      const file = require('fs').readFileSync(${JSON.stringify(path)});
      const bytes = new SharedArrayBuffer(file.length);
      new Uint8Array(bytes).set(file);
      const rss = async () => {
        for (let i = 0; i < 4; i++) gc(), await new Promise((resolve) => setTimeout(resolve, 20));
        return process.memoryUsage.rss() / 2 ** 20;
      };
      (async () => {
        const memory = [await rss()];
        const workers = [];
        for (let i = 0; i < 3; i++) {
          const worker = new Worker(${JSON.stringify(each)}, { eval: true, workerData: bytes });
          await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
          workers.push(worker);
          memory.push(await rss());
        }
        console.log(JSON.stringify(memory));
        await Promise.all(workers.map((worker) => worker.terminate()));
      })();`;
    const stdout = finish(measured);
    const [before, first, , third] = JSON.parse(stdout) as number[];
    expect(first! - before!).toBeGreaterThan(0.8 * megabytes); // the engine's own, packed
    const ownOfWorkers = 2 * 12; // Node.js's heaps and what the package is when loaded
    expect(third! - first!).toBeLessThan(ownOfWorkers + 0.5 * megabytes); // copies of their own would be 64 more
  });
});
