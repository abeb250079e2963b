#!/usr/bin/env node
// Whether resident memory stays flat over very many runs, aborted runs, and sessions made and released.
//
// usage: npm run memory [-- --runs N] [--aborted N] [--sessions N] [--workload NAME] [--peer]
//   --runs, --aborted, --sessions   how many of each (100000, 10000, 2000)
//   --workload   one of `npm run bench -- --set architectures` (rnn_tagger-200)
//   --peer       the same with onnxruntime-node, which cannot abort a run
//
// Each part has a process of its own. It prints resident memory after a tenth of the part and at its end, each after a
// collection of garbage: what the process needs at all is there after a tenth.
import { spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { loadEngine } from '../../scripts/lib/engine.mjs';
import { runMain } from '../../scripts/lib/project.mjs';
import { toFeeds } from '../../scripts/lib/values.mjs';
import { architecture, workloads } from '../architectures/workloads.mjs';
import { residentMegabytes } from './resident.mjs';

const program = fileURLToPath(import.meta.url);

const options = {
  runs: { type: 'string', default: '100000' },
  aborted: { type: 'string', default: '10000' },
  sessions: { type: 'string', default: '2000' },
  workload: { type: 'string', default: 'rnn_tagger-200' },
  peer: { type: 'boolean', default: false },
  child: { type: 'string' },
};
const { values } = parseArgs({ options });

/** What is done again and again. */
async function actionOf(part, InferenceSession, path, feeds) {
  if (part === 'sessions') {
    return async () => {
      const session = await InferenceSession.create(path);
      await session.run(feeds);
      await session.release();
    };
  }
  const session = await InferenceSession.create(path);
  if (part === 'runs') return () => session.run(feeds);
  return async () => {
    const controller = new AbortController();
    const run = session.run(feeds, { signal: controller.signal }).catch(() => undefined);
    await sleep(0);
    controller.abort();
    await run;
  };
}

async function measure(part) {
  const { model, inputs } = workloads.find(({ name }) => name === values.workload);
  const { InferenceSession, Tensor } = await loadEngine(values.peer ? 'peer' : 'infernode');
  const feeds = toFeeds({ Tensor }, inputs(7));
  const act = await actionOf(part, InferenceSession, await architecture(model), feeds);
  const count = Number(values[part]);
  const memory = [];
  for (let i = 1; i <= count; i++) {
    await act();
    if (i === Math.ceil(count / 10) || i === count) memory.push(await residentMegabytes());
  }
  console.log(JSON.stringify(memory));
}

async function main() {
  if (values.child !== undefined) return measure(values.child);
  await architecture(workloads.find(({ name }) => name === values.workload).model);
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
    const [tenth, end] = JSON.parse(stdout.trim().split('\n').at(-1));
    console.log(`  ${values[part]} ${part}: ${tenth.toFixed(1)} MB after a tenth, ${end.toFixed(1)} MB at the end`);
  }
}

await runMain(main);
