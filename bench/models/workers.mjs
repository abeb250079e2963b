#!/usr/bin/env node
// Worker threads: what a pool of them over one model costs, and whether any moment of their end harms the process.
//
// usage: npm run workers [-- --workers N] [--seconds N] [--ends N] [--workload NAME] [--peer]
//   --workers    size of the pool (4)
//   --ends       how many workers are terminated while they load, run or release (1000)
//   --workload   one of `npm run bench -- --set architectures` (minilm_l6-16)
//   --peer       the same with onnxruntime-node, which has no shared sessions
//
// Each part has a process of its own. Memory is what the process holds more than before, after a collection of garbage.
// Workers that load the engine and open no session show what of it is the workers' own: Node.js's and their heaps.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { loadEngine } from '../../scripts/lib/engine.mjs';
import { runMain } from '../../scripts/lib/project.mjs';
import { toFeeds } from '../../scripts/lib/values.mjs';
import { architecture, workloads } from '../architectures/workloads.mjs';
import { residentMegabytes } from './resident.mjs';

const program = fileURLToPath(import.meta.url);

const feedsOf = (Tensor, name) => toFeeds({ Tensor }, workloads.find((workload) => workload.name === name).inputs(7));

/** How a worker comes to its session: a file, the file's bytes, or the session of the main thread; or it has none. */
const ways = { none: 'no session', file: 'from a file', bytes: 'from bytes', shared: 'session.share()' };

/** The arguments of `create` for a model whose files have been read. */
function bytesOf(model) {
  const folder = dirname(model);
  const others = readdirSync(folder).filter((file) => file !== basename(model) && !file.endsWith('.json'));
  const externalData = others.map((path) => ({ path, data: readFileSync(join(folder, path)) }));
  return [readFileSync(model), { externalData }];
}

async function work() {
  const { engine, way, model, handle, workload, restless } = workerData;
  const { InferenceSession, Tensor } = await loadEngine(engine);
  const open = () => {
    if (way === 'shared') return InferenceSession.fromShared(handle);
    return way === 'bytes' ? InferenceSession.create(...bytesOf(model)) : InferenceSession.create(model);
  };
  const feeds = feedsOf(Tensor, workload);
  if (restless) parentPort.postMessage('works');
  if (way === 'none') {
    globalThis.gc();
    if (!restless) parentPort.postMessage('works');
    return parentPort.on('message', () => undefined); // and stays
  }
  let session = await open();
  if (!restless) {
    await session.run(feeds);
    globalThis.gc();
    parentPort.postMessage('works');
  }
  for (let runs = 1; ; runs++) {
    await session.run(feeds);
    if (!restless) parentPort.postMessage(1);
    if (restless && runs % 3 === 0) {
      await session.release();
      session = await open();
    }
  }
}

async function main(values) {
  const engine = values.peer ? 'peer' : 'infernode';
  const { model: name } = workloads.find((workload) => workload.name === values.workload);
  const model = await architecture(name);
  const { InferenceSession } = await loadEngine(engine);
  const way = values.child;
  const restless = way.startsWith('ends ');
  const data = { engine, way: way.replace('ends ', ''), model, workload: values.workload, restless };
  const before = await residentMegabytes();
  const session = data.way === 'shared' ? await InferenceSession.create(model) : undefined;
  data.handle = session?.share();
  const start = () => new Worker(program, { workerData: data });
  const result = restless ? await endThem(start, Number(values.ends)) : await keepThem(start, values, before);
  await session?.release();
  console.log(JSON.stringify({ ...result, after: (await residentMegabytes()) - before }));
}

async function keepThem(start, values, before) {
  const workers = [];
  let runs = 0;
  for (let i = 0; i < Number(values.workers); i++) {
    const worker = start();
    await once(worker, 'message');
    worker.on('message', () => runs++);
    workers.push(worker);
  }
  await sleep(500);
  runs = 0;
  await sleep(Number(values.seconds) * 1000);
  const rate = runs / Number(values.seconds);
  const memory = (await residentMegabytes()) - before;
  console.log(JSON.stringify({ rate, memory })); // said also by a process that dies when its workers end
  await Promise.all(workers.map((worker) => worker.terminate()));
  return { rate, memory };
}

async function endThem(start, ends) {
  let ended = 0;
  const keep = async () => {
    while (ended < ends) {
      ended++;
      const worker = start();
      await once(worker, 'message');
      await sleep(Math.random() * 60);
      await worker.terminate();
    }
  };
  await Promise.all([keep(), keep(), keep(), keep()]);
  return { ended };
}

/** One part in a process of its own: its result, or how the process ended. */
function part(way, args) {
  const { stdout, stderr, signal, status } = spawnSync(
    process.execPath,
    ['--expose-gc', program, ...args, '--child', way],
    { encoding: 'utf8', timeout: 1_800_000 },
  );
  const said = Object.assign({}, ...stdout.split('\n').filter(Boolean).map((line) => JSON.parse(line))); // prettier-ignore
  if (status === 0) return said;
  return { ...said, died: signal ?? `exit ${status}`, stderr: stderr.slice(-300) };
}

const options = {
  workers: { type: 'string', default: '4' },
  seconds: { type: 'string', default: '10' },
  ends: { type: 'string', default: '1000' },
  workload: { type: 'string', default: 'minilm_l6-16' },
  peer: { type: 'boolean', default: false },
  child: { type: 'string' },
};

async function report() {
  const { values } = parseArgs({ options });
  if (values.child !== undefined) return main(values);
  await architecture(workloads.find(({ name }) => name === values.workload).model);
  const args = process.argv.slice(2);
  const all = Object.keys(ways).filter((way) => way !== 'shared' || !values.peer);
  console.log(`${values.workers} workers, ${values.workload}, ${values.peer ? 'onnxruntime-node' : 'infernode'}`);
  for (const way of all) {
    const { rate, memory, after, died } = part(way, args);
    const running = rate === undefined ? '' : ` ${rate.toFixed(0)} runs a second, ${memory.toFixed(0)} MB;`;
    console.log(`  ${ways[way]}:${running} ${died ? `died by ${died}` : `${after.toFixed(0)} MB after they ended`}`);
  }
  for (const way of all) {
    const { ended, after, died } = part(`ends ${way}`, args);
    console.log(died ? `  ends, ${ways[way]}: died by ${died}` : `  ends, ${ways[way]}: ${ended} workers ended at any moment, process alive, ${after.toFixed(0)} MB more than before`); // prettier-ignore
  }
}

if (isMainThread) runMain(report);
else await work();
