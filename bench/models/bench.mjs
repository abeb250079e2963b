#!/usr/bin/env node
// Times whole models on infernode and on a peer, each in a process of its own, in alternating rounds.
//
// usage: npm run bench -- [options]
//
//   --peer ort|openvino|none   onnxruntime-node (the default), OpenVINO's Python wheel (needs Python 3 with venv), or nothing
//   --set SET                  architectures, real, trees or all three (the default); or costs: calls, loads, memory and
//                              the like, which takes --peer ort or none, --only, --rounds, --json and --readme; or
//                              random: networks that nobody tuned to, worst first, with what their time goes to
//   --seed N, --count N        which of the random networks (1), and how many (40)
//   --only PATTERN             the workloads whose names match a regular expression
//   --threads 1,2              counts of threads, each a row
//   --level LEVEL              our graphOptimizationLevel: disabled, basic, extended, layout or all
//   --precision PRECISION      our float32MatmulPrecision: highest, high or medium; OpenVINO's hint is bf16 with medium,
//                              else f32, and onnxruntime has no choice
//   --cpu TARGET               our INFERNODE_CPU: baseline, avx2, avx512, vnni, bf16, amx, neon, dotprod or i8mm
//   --rounds N, --seconds S    7 rounds of 0.5 s for each engine
//   --json [FILE]              the results as JSON, to standard output unless a file is named
//   --readme                   writes the table of this peer and precision in bench/README.md
//
// A time is the median over all rounds; a ratio (the peer's time over ours: above 1 we are faster) is the median over the
// rounds' ratios, with the lowest and highest. Outputs are compared in the same run, with OpenVINO's at f32 (bfloat16's, of
// precision medium, with a tolerance of their own): a wrong answer has no ratio. The exit status is 1 where a row has none. The
// rounds of one engine never overlap those of the other. Workloads that are bound by reading weights are set against the rate at
// which bench/microkernels reads memory.
import { readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { worstError } from '../../scripts/lib/agreement.mjs';
import { engineName } from '../../scripts/lib/engine.mjs';
import { peerFolder, peerVersion } from '../../scripts/lib/peer.mjs';
import { at, helpWasAsked } from '../../scripts/lib/project.mjs';
import { treeWorkloads } from '../architectures/trees.mjs';
import { architecture, workloads } from '../architectures/workloads.mjs';
import { costHead, costMarkdown, costText, holds } from './cost-report.mjs';
import { costs, measureCosts } from './costs.mjs';
import { rates, ratesProgram, streamProgram, streamRate, thisMachine } from './machine.mjs';
import { openvinoPython, openvinoVersion } from './openvino.mjs';
import { commandLine, parseOptions, tableName } from './options.mjs';
import { randomWorkloads } from '../random/random.mjs';
import { slowNodes, slowNodeText } from '../random/slow-nodes.mjs';
import { realWorkloads } from './real.mjs';
import * as report from './report.mjs';
import { nodeSide, openvinoSide } from './sides.mjs';
import { median } from './statistics.mjs';
import { boundByReading, weightBytes } from './weights.mjs';

const known = {
  architectures: workloads.map((item) => ({ ...item, path: () => architecture(item.model) })),
  real: realWorkloads,
  trees: treeWorkloads,
  costs,
};

const peerNames = {
  ort: [`onnxruntime-node ${peerVersion}`],
  openvino: [`OpenVINO ${openvinoVersion}`],
  none: [],
};

const optionsFor = (threads) => ({ intraOpNumThreads: threads, logSeverityLevel: 3 });

/** The peer on the same model, or nothing where there is none. */
async function peerSide(path, feeds, names, { fetches }, threads, { peer, precision }) {
  if (peer === 'none') return undefined;
  if (peer === 'openvino')
    return openvinoSide(path, feeds, { fetches, names, threads, precision: precision === 'medium' ? 'bf16' : 'f32' });
  return nodeSide('peer', path, feeds, { fetches, sessionOptions: optionsFor(threads) });
}

/** One row of the report. */
async function measure(workload, threads, options) {
  const { precision, level, cpu } = options;
  const { name, set, inputs, fetches, tolerance = precision === 'medium' ? 3e-2 : 1e-4, measure } = workload;
  const path = await workload.path();
  const feeds = inputs(7);
  const sides = [];
  try {
    const sessionOptions = {
      ...optionsFor(threads),
      ...(level && { graphOptimizationLevel: level }),
      ...(precision && { float32MatmulPrecision: precision }),
    };
    sides.push(
      await nodeSide(engineName(), path, feeds, { fetches, sessionOptions, env: cpu ? { INFERNODE_CPU: cpu } : {} }),
    );
    let peerFailed;
    try {
      const other = await peerSide(path, feeds, Object.keys(sides[0].outputs), workload, threads, options);
      if (other) sides.push(other);
    } catch (problem) {
      peerFailed = problem.message; // ours is timed all the same
    }
    const { error, output } = sides[1] ? worstError(sides[0].outputs, sides[1].outputs, measure) : {};
    const row = { name, set, threads, error, load: sides.map((side) => side.load), ...(peerFailed && { peerFailed }) };
    if (sides[1] && !(error <= tolerance)) return { ...row, wrong: `${error.toExponential(1)} in ${output}` };

    const rounds = sides.map(() => []);
    const counts = [];
    for (const side of sides)
      counts.push(Math.max(1, Math.round((1000 * options.seconds) / median(await side.time(1)))));
    for (let round = 0; round < options.rounds; round++) {
      for (const [i, side] of sides.entries()) {
        await sleep(100); // until the other engine's threads have stopped spinning
        rounds[i].push(await side.time(counts[i]));
      }
    }
    const [ours, theirs] = rounds.map((list) => median(list.flat()));
    const timed = {
      ...row,
      ours,
      ...(boundByReading.includes(name) && { weights: weightBytes(workload.model, precision) }),
    };
    if (!sides[1]) return timed;
    const ratios = rounds[0].map((times, i) => median(rounds[1][i]) / median(times));
    return { ...timed, theirs, ratio: median(ratios), lowest: Math.min(...ratios), highest: Math.max(...ratios) };
  } finally {
    await Promise.all(sides.map((side) => side.stop()));
  }
}

/** A function that keeps the best rate of streaming memory seen for each count of threads; {} where there is no program. */
async function streamMeter(wanted, print) {
  const rates = {};
  if (!wanted) return { rates, look: async () => {} };
  try {
    const program = await streamProgram();
    const look = async (threads) => {
      rates[threads] = Math.max(rates[threads] ?? 0, await streamRate(program, threads));
    };
    return { rates, look };
  } catch (error) {
    print(`no rate of streaming memory: ${error.message.split('\n')[0]}`);
    return { rates, look: async () => {} };
  }
}

/** Times whole models: what is written of them, and whether a row lacks its ratio. */
async function benchWorkloads(chosen, options, print) {
  const meter = await streamMeter(
    chosen.some(({ name }) => boundByReading.includes(name)),
    print,
  );
  print(report.headText(options.peer));
  const rows = [];
  for (const workload of chosen) {
    for (const threads of options.threads) {
      const reads = boundByReading.includes(workload.name);
      if (reads) await meter.look(threads);
      const row = await measure(workload, threads, options).catch((error) => ({
        name: workload.name,
        set: workload.set,
        threads,
        failed: error.message,
      }));
      if (reads) await meter.look(threads);
      rows.push(row);
      print(report.rowText(row));
    }
  }
  const summary = report.summarize(rows);
  const streaming = report.streaming(rows, meter.rates);
  for (const item of summary) print(report.summaryText(item));
  for (const item of streaming) print(report.streamingText(item));
  return {
    json: { rows, summary, streaming },
    markdown: (head) => report.markdown({ ...head, rows, rates: meter.rates }),
    failed: rows.some((row) => report.problem(row)),
  };
}

/** The slow nodes of a row's workload, as lines, with the roofs that this machine measures. */
async function slowNodesText({ workload, threads }, roofs) {
  const sessionOptions = optionsFor(threads);
  const slow = await slowNodes(await workload.path(), workload.inputs(7), { sessionOptions, ...roofs });
  return slow.map(slowNodeText);
}

/** Random networks: the rows, and then, worst first, those in which the peer is ahead, with what their time goes to. */
async function benchRandom(chosen, options, print) {
  const measured = await benchWorkloads(chosen, options, print);
  const behind = measured.json.rows
    .filter(({ ratio }) => ratio < 1)
    .sort((a, b) => a.ratio - b.ratio)
    .slice(0, 10);
  if (behind.length === 0) return measured;
  const peaks = Object.entries(await rates(await ratesProgram()));
  const flops = Math.max(...peaks.map(([, { peak }]) => peak)) * 1e9;
  const bytes = (await streamRate(await streamProgram(), 1)) * 1e9;
  print(
    `\nbehind, worst first; roofs of one thread: ${(flops / 1e9).toFixed(0)} GFLOP/s, ${(bytes / 1e9).toFixed(0)} GB/s`,
  );
  for (const row of behind) {
    const workload = chosen.find(({ name }) => name === row.name);
    print(`${report.rowText(row)}  ${workload.note}`);
    for (const line of await slowNodesText({ workload, threads: row.threads }, { flops, bytes })) print(line);
  }
  return measured;
}

/** The same of the set `costs`; a goal that does not hold is no failure. */
async function benchCosts(chosen, options, print) {
  print(costHead);
  const rows = await measureCosts(chosen, options, (row) => print(costText(row)));
  return {
    json: { rows: rows.map((row) => ({ ...row, holds: holds(row) })) },
    markdown: (head) => costMarkdown({ ...head, rows }),
    failed: rows.some(({ failed }) => failed),
  };
}

const programs = { costs: benchCosts, random: benchRandom };

async function main() {
  const args = process.argv.slice(2);
  const options = parseOptions(args);
  const all = { ...known, random: options.sets[0] === 'random' ? randomWorkloads(options.seed, options.count) : [] };
  const chosen = options.sets
    .flatMap((set) => all[set].map((workload) => ({ ...workload, set })))
    .filter(({ name }) => options.only.test(name));
  if (!chosen.length)
    throw new Error(`no workload of ${options.sets.join(', ')} matches --only ${options.only.source}`);
  const readme = at('bench', 'README.md');
  if (options.readme) {
    if (engineName() !== 'infernode') throw new Error('--readme is for results of infernode: unset INFERNODE_ENGINE');
    report.replaceTable(readFileSync(readme, 'utf8'), tableName(options), ''); // has a place for the table
  }
  // Installed before anything is timed.
  if (options.peer === 'ort') await peerFolder();
  if (options.peer === 'openvino') await openvinoPython();

  const print = options.json === '-' ? console.error : console.log;
  const machine = thisMachine();
  const versions = [`Node ${process.version}`, ...peerNames[options.peer]].join(', ');
  print(`${machine}; ${versions}`);
  const measured = await (programs[options.sets[0]] ?? benchWorkloads)(chosen, options, print);
  const json = { machine, versions, options: { ...options, only: options.only.source }, ...measured.json };
  if (options.json === '-') console.log(JSON.stringify(json, null, 1));
  else if (options.json) writeFileSync(options.json, `${JSON.stringify(json, null, 1)}\n`);
  if (options.readme) {
    const content = measured.markdown({ command: commandLine(args), machine, versions });
    writeFileSync(readme, report.replaceTable(readFileSync(readme, 'utf8'), tableName(options), content));
  }
  if (measured.failed) process.exitCode = 1;
}

try {
  if (!helpWasAsked()) await main();
} catch (error) {
  console.error(`bench: ${error.message}`);
  process.exitCode = 2;
}
