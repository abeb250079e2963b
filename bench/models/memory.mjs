#!/usr/bin/env node
// Whether resident memory stays flat over very many runs, aborted runs, and sessions made and released.
//
// usage: npm run memory [-- --runs N] [--aborted N] [--sessions N] [--workload NAME] [--peer]
//   --runs, --aborted, --sessions   how many of each (100000, 10000, 2000)
//   --workload   one of bench/architectures/workloads.mjs (rnn_tagger, a run of 2 ms)
//   --peer       the same with onnxruntime-node, which cannot abort a run
//
// Each part has a process of its own. It prints resident memory after a tenth of the part and at its end: what the
// process needs at all is there after a tenth. Garbage is collected at each tenth. V8 keeps room for as much of it as there
// was at its worst, so the end says how much of it is V8's.
import { spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { loadEngine } from '../../scripts/lib/engine.mjs';
import { runMain } from '../../scripts/lib/project.mjs';
import { toFeeds } from '../../scripts/lib/values.mjs';
import { architecture, checks, workloads } from '../architectures/workloads.mjs';
import { residentMegabytes } from './resident.mjs';

const program = fileURLToPath(import.meta.url);

const options = {
  runs: { type: 'string', default: '100000' },
  aborted: { type: 'string', default: '10000' },
  sessions: { type: 'string', default: '2000' },
  workload: { type: 'string', default: 'rnn_tagger' },
  peer: { type: 'boolean', default: false },
  child: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
};
const { values } = parseArgs({ options });

const workload = () => [...checks, ...workloads].find(({ name }) => name === values.workload);

/** What is done again and again. It says whether a run ended early. */
async function actionOf(part, InferenceSession, path, feeds) {
  if (part === 'sessions') {
    return async () => {
      const session = await InferenceSession.create(path);
      await session.run(feeds);
      await session.release();
      return false;
    };
  }
  const session = await InferenceSession.create(path);
  if (part === 'runs') return () => session.run(feeds).then(() => false);
  return async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const ended = session.run(feeds, { signal }).then(
      () => false,
      () => true,
    );
    await sleep(0);
    controller.abort();
    return ended;
  };
}

async function measure(part) {
  const { model, inputs } = workload();
  const { InferenceSession, Tensor } = await loadEngine(values.peer ? 'peer' : 'infernode');
  const feeds = toFeeds({ Tensor }, inputs(7));
  const act = await actionOf(part, InferenceSession, await architecture(model), feeds);
  const count = Number(values[part]);
  const memory = [];
  let ended = 0;
  for (let i = 1; i <= count; i++) {
    ended += Number(await act());
    if (i % Math.ceil(count / 10) === 0 || i === count) memory.push(await residentMegabytes());
  }
  const heap = process.memoryUsage().heapTotal / 2 ** 20;
  console.log(JSON.stringify({ tenth: memory[0], end: memory.at(-1), heap, ended }));
}

async function main() {
  if (values.child !== undefined) return measure(values.child);
  await architecture(workload().model);
  console.log(`${values.workload}, ${values.peer ? 'onnxruntime-node' : 'infernode'}`);
  for (const part of ['runs', 'aborted', 'sessions']) {
    if (values.peer && part === 'aborted') continue;
    const args = ['--expose-gc', program, ...process.argv.slice(2), '--child', part];
    const { stdout, stderr, status, signal } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    if (status !== 0) {
      console.log(`  ${values[part]} ${part}: died by ${signal ?? `exit ${status}`}: ${stderr.slice(-300)}`);
      process.exitCode = 1;
      continue;
    }
    const { tenth, end, heap, ended } = JSON.parse(stdout.trim().split('\n').at(-1));
    const early = part === 'aborted' ? `; ${ended} ended early` : '';
    console.log(
      `  ${values[part]} ${part}: ${tenth.toFixed(1)} MB after a tenth, ${end.toFixed(1)} MB at the end, ${heap.toFixed(1)} of them V8's heap${early}`,
    );
  }
}

await runMain(main);
