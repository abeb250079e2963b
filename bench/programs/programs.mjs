#!/usr/bin/env node
// Three programs as a new user would write them, on this engine and on onnxruntime-node: an HTTP service under load, a pool
// of workers over one model, a token loop. What they get done in a second, how late the event loop of their main thread
// turns, and the most memory their process held.
//
// usage: npm run programs [-- --only service,pool,tokens] [--seconds N] [--rounds N]
//
// Each program has a process of its own, and the engines take turns. Delays are wall time: on a busy machine they hold the
// time of others. Ratios are medians of the rounds': above 1 this engine gets more done.
import { spawnSync } from 'node:child_process';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { engineEnvironment, loadEngine } from '../../scripts/lib/engine.mjs';
import { runMain } from '../../scripts/lib/project.mjs';
import { architecture } from '../architectures/workloads.mjs';
import { median } from '../models/statistics.mjs';

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: 'service,pool,tokens' },
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '5' },
    child: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  },
});

const millisecond = 1e6; // of the loop's histogram, which counts nanoseconds

/** In a process of its own: what a program does in `seconds`. */
async function measure(name, engine, seconds) {
  const { model, start } = await import(`./${name}.mjs`);
  const ort = await loadEngine(engine);
  const program = await start({ ort, engine, path: await architecture(model) });
  await program.work(1);
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const begin = performance.now();
  const count = await program.work(seconds);
  const rate = count / ((performance.now() - begin) / 1000);
  delay.disable();
  await program.stop();
  const p99 = delay.percentile(99) / millisecond - 1;
  return { answer: program.answer, rate, p99, megabytes: process.resourceUsage().maxRSS / 1024 };
}

function inChild(name, engine) {
  const args = [process.argv[1], '--child', `${name} ${engine}`, '--seconds', values.seconds];
  const env = { ...process.env, ...engineEnvironment };
  const { stdout, stderr, status, signal } = spawnSync(process.execPath, args, { encoding: 'utf8', env });
  if (status !== 0) throw new Error(`${name} on ${engine} ended with ${signal ?? status}: ${stderr.slice(-500)}`);
  return JSON.parse(stdout.trim().split('\n').at(-1));
}

/** Throws unless both engines told the same. */
function compare(name, { answer: ours }, { answer: peers }) {
  const apart = ours.map((value, i) => Math.abs(value - peers[i]));
  if (ours.length !== peers.length || !apart.every((value) => value < 1e-3))
    throw new Error(`${name}: the engines answer otherwise: ${ours} and ${peers}`);
}

async function report() {
  const names = values.only.split(',');
  const engines = ['infernode', 'peer'];
  console.log('program     a second      peer   ratio   loop p99 ms      peer   memory MB      peer');
  for (const name of names) {
    const { model, unit } = await import(`./${name}.mjs`);
    await architecture(model);
    const all = { infernode: [], peer: [] };
    for (let round = 0; round < Number(values.rounds); round++) {
      for (const engine of round % 2 ? [...engines].reverse() : engines) all[engine].push(inChild(name, engine));
      compare(name, all.infernode[round], all.peer[round]);
    }
    const of = (engine, key) => median(all[engine].map((each) => each[key]));
    const ratio = median(all.infernode.map(({ rate }, round) => rate / all.peer[round].rate));
    const cells = (key, widths, digits = 0) =>
      engines.map((engine, i) => of(engine, key).toFixed(digits).padStart(widths[i])).join('');
    const rates = cells('rate', [11, 10]) + ratio.toFixed(2).padStart(8);
    console.log(`${name.padEnd(9)}${rates}${cells('p99', [14, 10], 1)}${cells('megabytes', [12, 10])}   ${unit}`);
  }
}

runMain(async () => {
  if (!values.child) return report();
  const [name, engine] = values.child.split(' ');
  console.log(JSON.stringify(await measure(name, engine, Number(values.seconds))));
});
