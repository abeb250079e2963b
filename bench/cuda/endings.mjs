#!/usr/bin/env node
// Ends processes and workers in the middle of runs on the GPU: process.exit() and worker.terminate(), each so many times.
//
// usage: node bench/cuda/endings.mjs [--times N] [--provider NAME]
//
// Exit status 1 where one ended with a signal or another status than it asked for.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { loadEngine } from '../../scripts/lib/engine.mjs';
import { toFeeds } from '../../scripts/lib/values.mjs';
import { architecture, checks } from '../architectures/workloads.mjs';

const here = fileURLToPath(import.meta.url);
const model = 'whisper_base_encoder'; // a run takes milliseconds
const { values } = parseArgs({
  options: {
    times: { type: 'string', default: '50' },
    provider: { type: 'string', default: 'cuda' },
    child: { type: 'string' },
  },
});
const times = Number(values.times);

/** Runs for ever; `begun` is called when the first run is over. */
async function runOnAndOn(provider, begun) {
  const ort = await loadEngine();
  const session = await ort.InferenceSession.create(await architecture(model), {
    executionProviders: [provider, 'cpu'],
  });
  const feeds = toFeeds(ort, checks.find((check) => check.model === model).inputs(1));
  await session.run(feeds);
  begun();
  for (;;) await Promise.all([session.run(feeds), session.run(feeds)]);
}

/** A process that ends itself after so many milliseconds of runs; gives its status or signal. */
const exiting = (delay) =>
  new Promise((resolve) => {
    const args = [here, '--child', String(delay), '--provider', values.provider];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit'] });
    child.on('close', (code, signal) => resolve(signal ?? code));
  });

async function terminating(delay) {
  const worker = new Worker(here, { workerData: values.provider });
  await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
  await new Promise((resolve) => setTimeout(resolve, delay));
  await worker.terminate();
}

async function main() {
  const ended = [];
  const jobs = 5;
  for (let i = 0; i < times; i += jobs) {
    const some = Array.from({ length: Math.min(jobs, times - i) }, (_, j) => exiting(((i + j) * 7) % 13));
    ended.push(...(await Promise.all(some)));
  }
  const wrong = ended.filter((status) => status !== 7);
  console.log(`process.exit(7) in the middle of runs: ${times - wrong.length} of ${times} ended with 7 ${wrong}`);
  for (let i = 0; i < times; i++) await terminating((i * 7) % 13);
  console.log(`worker.terminate() in the middle of runs: ${times} of ${times}`);
  if (wrong.length) process.exitCode = 1;
}

if (!isMainThread) await runOnAndOn(workerData, () => parentPort.postMessage('begun'));
else if (values.child) await runOnAndOn(values.provider, () => setTimeout(() => process.exit(7), Number(values.child)));
else await main();
