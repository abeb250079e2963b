#!/usr/bin/env node
// Times whole models on infernode and on onnxruntime-node, each in a process of its own, in alternating rounds.
//
// usage: npm run bench -- [--peer ort|none] [--threads 1,2] [--only PATTERN] [--set architectures|real|trees|all]
//          [--level LEVEL] [--cpu TARGET] [--precision highest|high|medium] [--rounds N] [--seconds S] [--json [FILE]]
//
// A time is the median over all rounds; a ratio (the peer's time over ours: above 1 we are faster) is the median over the
// rounds' ratios, with the lowest and highest. Outputs are compared in the same run: a wrong answer has no ratio and makes
// the exit status 1. The rounds of one engine never overlap those of the other.
import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { worstError } from '../../scripts/lib/agreement.mjs';
import { EngineProcess } from '../../scripts/lib/engine-process.mjs';
import { engineName } from '../../scripts/lib/engine.mjs';
import { peerVersion } from '../../scripts/lib/peer.mjs';
import { treeWorkloads } from '../../scripts/models/trees.mjs';
import { architecture, workloads } from '../../scripts/models/workloads.mjs';
import { realWorkloads } from './real.mjs';
import { geometricMean, median } from './statistics.mjs';

const options = {
  peer: { type: 'string', default: 'ort' },
  threads: { type: 'string', default: '1,2' },
  only: { type: 'string' },
  set: { type: 'string', default: 'all' },
  level: { type: 'string' },
  cpu: { type: 'string' },
  precision: { type: 'string' },
  rounds: { type: 'string', default: '7' },
  seconds: { type: 'string', default: '0.5' },
  json: { type: 'string' },
};

/** A session in a process of its own, warm, with its feeds in place. */
async function prepare(engine, path, feeds, fetches, sessionOptions, env) {
  const process = await EngineProcess.start(engine, env);
  const started = performance.now();
  const { id } = await process.create(path, sessionOptions);
  const load = performance.now() - started;
  const outputs = await process.run(id, feeds, fetches);
  await process.feed(id, feeds);
  await process.time(id, 2, fetches);
  return { process, load, outputs, time: (count) => process.time(id, count, fetches) };
}

/** One row of the report. */
async function measure(workload, threads, { peer, values }) {
  const { name, inputs, fetches, tolerance = 1e-4, measure } = workload;
  const path = await workload.path();
  const feeds = inputs(7);
  const common = { intraOpNumThreads: threads, logSeverityLevel: 3 };
  const ownOptions = {
    ...common,
    ...(values.level && { graphOptimizationLevel: values.level }),
    ...(values.precision && { float32MatmulPrecision: values.precision }),
  };
  const sides = [];
  try {
    sides.push(
      await prepare(engineName(), path, feeds, fetches, ownOptions, values.cpu ? { INFERNODE_CPU: values.cpu } : {}),
    );
    if (peer) sides.push(await prepare('peer', path, feeds, fetches, common, {}));
    const { error, output } = peer ? worstError(sides[0].outputs, sides[1].outputs, measure) : { error: 0 };
    const row = { name, threads, error, load: sides.map((side) => side.load) };
    if (!(error <= tolerance)) return { ...row, wrong: `${error.toExponential(1)} in ${output}` };

    const rounds = sides.map(() => []);
    const counts = [];
    for (const side of sides)
      counts.push(Math.max(1, Math.round((1000 * Number(values.seconds)) / median(await side.time(1)))));
    for (let round = 0; round < Number(values.rounds); round++) {
      for (const [i, side] of sides.entries()) {
        await sleep(100); // until the other engine's threads have stopped spinning
        rounds[i].push(await side.time(counts[i]));
      }
    }
    const [ours, theirs] = rounds.map((list) => median(list.flat()));
    if (!peer) return { ...row, ours };
    const ratios = rounds[0].map((times, i) => median(rounds[1][i]) / median(times));
    return { ...row, ours, theirs, ratio: median(ratios), lowest: Math.min(...ratios), highest: Math.max(...ratios) };
  } finally {
    await Promise.all(sides.map((side) => side.process.stop()));
  }
}

const number = (value, width) =>
  (value === undefined ? '' : value.toFixed(value < 10 ? 3 : value < 100 ? 2 : 1)).padStart(width);

function rowText({ name, threads, ours, theirs, ratio, lowest, highest, wrong, failed }) {
  const head = `${name.padEnd(28)} ${threads}T`;
  if (failed) return `${head}  failed: ${failed.split('\n')[0].slice(0, 160)}`;
  if (wrong) return `${head}  wrong answer: relative error ${wrong}`;
  const spread =
    ratio === undefined ? '' : ` ${ratio.toFixed(2).padStart(6)}  (${lowest.toFixed(2)} to ${highest.toFixed(2)})`;
  return `${head} ${number(ours, 9)} ${number(theirs, 9)}${spread}`;
}

async function main() {
  const args = process.argv.slice(2);
  const bare = args.indexOf('--json');
  if (bare >= 0 && (!args[bare + 1] || args[bare + 1].startsWith('--'))) args[bare] = '--json=-';
  const { values } = parseArgs({ args, options });
  if (!['ort', 'none'].includes(values.peer)) throw new Error(`--peer ${values.peer}: use ort or none`);
  const peer = values.peer === 'ort';
  const ownSets = {
    architectures: workloads.map((item) => ({ ...item, path: () => architecture(item.model) })),
    real: realWorkloads,
    trees: treeWorkloads,
  };
  const sets = values.set === 'all' ? Object.keys(ownSets) : [values.set];
  if (!ownSets[sets[0]]) throw new Error(`--set ${values.set}: use architectures, real, trees or all`);
  const only = new RegExp(values.only ?? '');
  const chosen = sets.flatMap((set) => ownSets[set]).filter(({ name }) => only.test(name));
  if (!chosen.length) throw new Error(`no workload matches --only ${values.only}`);

  const print = values.json === '-' ? console.error : console.log;
  print(
    `${cpus()[0].model}, ${cpus().length} cores, Node ${process.version}${peer ? `, onnxruntime-node ${peerVersion}` : ''}`,
  );
  print(
    `${'workload'.padEnd(31)} ${'ours ms'.padStart(9)} ${peer ? `${'peer ms'.padStart(9)} ${'ratio'.padStart(6)}  (spread)` : ''}`,
  );
  const rows = [];
  for (const workload of chosen) {
    for (const threads of values.threads.split(',').map(Number)) {
      const row = await measure(workload, threads, { peer, values }).catch((error) => ({
        name: workload.name,
        threads,
        failed: error.message,
      }));
      rows.push(row);
      print(rowText(row));
    }
  }
  const summary = [];
  for (const threads of peer ? values.threads.split(',').map(Number) : []) {
    const ratios = rows.filter((row) => row.threads === threads && row.ratio).map((row) => row.ratio);
    if (!ratios.length) continue;
    summary.push({ threads, geometricMean: geometricMean(ratios), workloads: ratios.length });
    print(`geometric mean of ${ratios.length} ratios, ${threads}T: ${geometricMean(ratios).toFixed(2)}`);
  }
  const report = JSON.stringify(
    { machine: cpus()[0].model, node: process.version, options: values, rows, summary },
    null,
    1,
  );
  if (values.json === '-') console.log(report);
  else if (values.json) writeFileSync(values.json, `${report}\n`);
  if (rows.some((row) => row.wrong || row.failed)) process.exitCode = 1;
}

try {
  await main();
} catch (error) {
  console.error(`bench: ${error.message}`);
  process.exitCode = 2;
}
