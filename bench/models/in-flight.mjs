#!/usr/bin/env node
// What many runs in flight cost the process they are in: how late JavaScript's loop turns, how long a call of `run` takes
// before it returns, what memory the runs hold, and how many end in a second.
//
// usage: npm run in-flight [-- --in-flight 4,64,1000] [--seconds N] [--workload NAME] [--outputs NAMES] [--peer]
//   --workload   one of `npm run bench -- --set architectures` (minilm_l6-16)
//   --outputs    these alone, by name with commas: small ones leave less to collect
//   --peer       the same with onnxruntime-node
//
// Each number of runs has a process of its own, in which as many are started and each that ends is followed by another.
// Delays are wall time: on a busy machine they hold the time of others.
import { spawnSync } from 'node:child_process';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { loadEngine } from '../../scripts/lib/engine.mjs';
import { runMain } from '../../scripts/lib/project.mjs';
import { toFeeds } from '../../scripts/lib/values.mjs';
import { architecture, workloads } from '../architectures/workloads.mjs';

const { values } = parseArgs({
  options: {
    'in-flight': { type: 'string', default: '4,64,1000' },
    seconds: { type: 'string', default: '10' },
    workload: { type: 'string', default: 'minilm_l6-16' },
    outputs: { type: 'string' },
    peer: { type: 'boolean', default: false },
    child: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h' },
  },
});

const millisecond = 1e6; // of the loop's histogram, which counts nanoseconds

async function measure(count, seconds) {
  const { model, inputs } = workloads.find(({ name }) => name === values.workload);
  const { InferenceSession, Tensor } = await loadEngine(values.peer ? 'peer' : 'infernode');
  const session = await InferenceSession.create(await architecture(model));
  const feeds = toFeeds({ Tensor }, inputs(7));
  const outputs = values.outputs?.split(',') ?? session.outputNames;
  for (let i = 0; i < 3; ++i) await session.run(feeds, outputs);
  const before = process.memoryUsage.rss();
  let ended = 0;
  let longest = 0;
  let over = false;
  const keepOne = async () => {
    while (!over) {
      const begin = performance.now();
      const run = session.run(feeds, outputs);
      longest = Math.max(longest, performance.now() - begin);
      await run;
      ++ended;
      await sleep(0); // as a server's next request would come
    }
  };
  const all = Array.from({ length: count }, keepOne);
  const delay = monitorEventLoopDelay({ resolution: 1 });
  await sleep(1000);
  ended = 0;
  delay.enable();
  const begin = performance.now();
  await sleep(seconds * 1000);
  const rate = ended / ((performance.now() - begin) / 1000);
  delay.disable();
  const rss = process.memoryUsage.rss();
  over = true;
  await Promise.all(all);
  return { p99: delay.percentile(99) / millisecond - 1, longest, megabytes: (rss - before) / 2 ** 20, rate };
}

async function main() {
  const counts = values['in-flight'].split(',').map(Number);
  if (values.child) return console.log(JSON.stringify(await measure(counts[0], Number(values.seconds))));
  console.log(`${values.workload}, ${values.peer ? 'onnxruntime-node' : 'infernode'}`);
  console.log('in flight   loop p99 ms   longest call ms   memory MB   runs/s');
  for (const count of counts) {
    const args = [process.argv[1], ...process.argv.slice(2), '--child', '--in-flight', String(count)];
    const { stdout, status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    if (status !== 0) throw new Error(`with ${count} in flight: ${stderr}`);
    const { p99, longest, megabytes, rate } = JSON.parse(stdout);
    const cell = (value, width) => value.toFixed(1).padStart(width);
    console.log(String(count).padStart(9) + cell(p99, 14) + cell(longest, 18) + cell(megabytes, 12) + cell(rate, 9));
  }
}

runMain(main);
