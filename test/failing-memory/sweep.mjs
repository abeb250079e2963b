// Has every request for memory or a thread fail, one at a time, and from each on all that follow, while small models are
// loaded, run, aborted and released: each case must end with right answers or errors, in a process that ends by itself
// with no promise left open. Prints the cases by outcome; for Linux with glibc.
//
// usage: npm run failing-memory [-- --model NAME] [--step N] [--cold N] [--build FOLDER] [--peer]
//   --model    that model of models.ts alone
//   --step     plays every Nth request (1), from one that differs from model to model
//   --cold     as --step for cases that load the addon as well, each in a process of its own (200)
//   --build    CMake's folder (build), which builds what is preloaded
//   --peer     the same with onnxruntime-node and the requests of its library, whose errors have no codes; async alone
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import { cmakeBuild } from '../../scripts/lib/live.mjs';
import { at, isMain, runMain, say } from '../../scripts/lib/project.mjs';

/** Whether the system has what is preloaded. */
export const supported =
  process.platform === 'linux' && process.report.getReport().header.glibcVersionRuntime !== undefined;

const work = at('build', 'failing-memory');

/** Builds what is preloaded and writes the models; returns both paths and the models' names. */
export async function prepare(folder = at('build')) {
  await cmakeBuild(folder, ['--target', 'infernode_failing_memory']);
  const shim = `${folder}/failing-memory/failing_memory.node`;
  mkdirSync(work, { recursive: true });
  const bundled = `${work}/models.mjs`;
  await build({ entryPoints: [at('test/failing-memory/models.ts')], outfile: bundled, bundle: true, format: 'esm' });
  const { subjects } = await import(bundled);
  const coded = Object.entries(subjects).map(([name, { bytes, feeds }]) => [
    name,
    { bytes: Buffer.from(bytes).toString('base64'), feeds },
  ]);
  const models = `${work}/models.json`;
  writeFileSync(models, JSON.stringify(Object.fromEntries(coded)));
  return { shim, models, names: Object.keys(subjects) };
}

/**
 * Plays a plan in one process: `model` by name, `how` async or sync, whether `all` requests from each number on fail,
 * which `numbers`, or all `from` one on by `step` until there are no more requests; `cold` has the addon loaded in the
 * one case.
 * @returns {Promise<{ ended: object[], fault?: string, at?: number }>} the cases that ended, and what went wrong in which
 */
function play({ shim, models }, plan) {
  return new Promise((resolve, reject) => {
    const args = ['--expose-gc', at('test/failing-memory/child.mjs'), shim, models, JSON.stringify(plan)];
    const child = spawn(process.execPath, args, {
      env: { ...process.env, LD_PRELOAD: shim, ...(plan.peer && peerEnvironment) },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    let errors = '';
    child.stdout.on('data', (chunk) => (output += chunk));
    child.stderr.on('data', (chunk) => (errors += chunk));
    const silence = setInterval(() => {
      if (output.length === silence.seen) child.kill('SIGKILL');
      silence.seen = output.length;
    }, 60_000);
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearInterval(silence);
      const lines = output
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line));
      const ended = lines.filter((line) => line.ends !== undefined);
      const over = code === 0 && lines.at(-1)?.over === true;
      const begun = lines.findLast((line) => line.begins !== undefined)?.begins;
      const wrong = ended.find((line) => line.outcomes.some((outcome) => !acceptable.has(outcome)));
      if (wrong) resolve({ ended, at: wrong.ends, fault: wrong.outcomes.find((outcome) => !acceptable.has(outcome)) });
      else if (over) resolve({ ended });
      else resolve({ ended, at: begun, fault: `${signal ?? `exit ${code}`} ${errors.trim().slice(-1500)}` });
    });
  });
}

const peerEnvironment = { INFERNODE_ENGINE: 'peer', FAILING_LIBRARY: 'libonnxruntime.so' };

/** What a call may come to while memory fails; 'an error' where the engine has no codes. */
const acceptable = new Set(['right', 'OUT_OF_MEMORY', 'ABORTED', 'an error']);

/** Adds up what cases came to. */
export class Tally {
  cases = 0;
  requests = 0;
  /** @type {Record<string, number>} */
  outcomes = {};
  /** @type {string[]} */
  faults = [];

  add(plan, { ended, fault, at }) {
    this.cases += ended.length;
    for (const { outcomes } of ended) for (const each of outcomes) this.outcomes[each] = (this.outcomes[each] ?? 0) + 1;
    for (const { requests } of ended) this.requests = Math.max(this.requests, requests);
    if (fault === undefined) return;
    if (ended.at(-1)?.ends !== at) this.cases += 1;
    this.faults.push(
      `${plan.model}, ${plan.cold ? 'cold, ' : ''}${plan.how}, ${plan.all ? 'all from' : 'only'} ${at}: ${fault}`,
    );
  }
}

const hows = ['async', 'sync'];

/** How many requests a case makes that nothing fails in. */
async function requestsOf(tools, plan) {
  const { ended, fault } = await play(tools, { ...plan, all: false, numbers: [1e9] });
  if (fault) throw new Error(`${plan.model} fails with memory enough: ${fault}`);
  return ended[0].requests;
}

/** `count` cases of each of the models given, sync and async, one failing and all, spread over the requests. */
export async function sample(tools, { models, count, cold }) {
  const tally = new Tally();
  for (const [turn, model] of models.entries()) {
    for (const how of hows) {
      const most = await requestsOf(tools, { model, how });
      for (const all of [false, true]) {
        // Another part of each stretch for each model: together they see more.
        const numbers = Array.from(
          { length: count },
          (_, i) => 1 + Math.floor(((i + turn / models.length) * most) / count),
        );
        const plan = { model, how, all, numbers };
        tally.add(plan, await play(tools, plan));
      }
    }
  }
  const model = models[0];
  const most = await requestsOf(tools, { model, how: 'async', cold: true });
  for (let i = 0; i < cold; ++i) {
    const plan = { model, how: 'async', all: i % 2 === 0, cold: true, numbers: [1 + Math.floor((i * most) / cold)] };
    tally.add(plan, await play(tools, plan));
  }
  return tally;
}

/** All cases of a plan, by `step`; a process that ends is followed by another that goes on after the case. */
async function whole(tools, plan, step, begin, tally) {
  for (let from = begin; ;) {
    const played = await play(tools, { ...plan, from, step });
    tally.add(plan, played);
    if (played.fault === undefined) return;
    from = played.at + step;
  }
}

async function main() {
  const { values } = parseArgs({
    options: {
      model: { type: 'string' },
      step: { type: 'string', default: '1' },
      cold: { type: 'string', default: '200' },
      build: { type: 'string', default: at('build') },
      peer: { type: 'boolean', default: false },
    },
  });
  if (!supported) return say('not run: it needs Linux with glibc');
  const tools = await prepare(values.build);
  const { peer } = values;
  const step = Number(values.step);
  const faults = [];
  const show = (name, tally) => {
    const outcomes = Object.entries(tally.outcomes).map(([outcome, count]) => `${outcome} ${count}`);
    console.log(
      `${name.padEnd(28)} ${String(tally.cases).padStart(6)} cases, ${tally.faults.length} faults; ${outcomes.join(', ')}`,
    );
    for (const fault of tally.faults) console.log(`  ${fault}`);
    faults.push(...tally.faults);
  };
  for (const [turn, model] of tools.names.entries()) {
    if (values.model !== undefined && values.model !== model) continue;
    for (const how of peer ? ['async'] : hows) {
      for (const all of [false, true]) {
        const tally = new Tally();
        await whole(tools, { model, how, all, peer }, step, 1 + (turn % step), tally);
        show(`${model}, ${how}, ${all ? 'all from n' : 'only n'}`, tally);
      }
    }
  }
  const model = values.model ?? tools.names[0];
  const most = await requestsOf(tools, { model, how: 'async', cold: true, peer });
  for (const all of [false, true]) {
    const tally = new Tally();
    for (let number = 1; number <= most; number += Number(values.cold)) {
      const plan = { model, how: 'async', all, cold: true, numbers: [number], peer };
      tally.add(plan, await play(tools, plan));
    }
    show(`start, ${all ? 'all from n' : 'only n'}`, tally);
  }
  console.log(faults.length === 0 ? 'no fault' : `${faults.length} faults`);
  if (faults.length > 0) process.exitCode = 1;
}

if (isMain(import.meta.url)) runMain(main);
