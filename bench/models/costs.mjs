// What an engine costs beside the arithmetic of its models: calls, loads, memory, starts, idle threads, and how near the
// products of matrices come to what the instructions can. Each number comes from fresh processes (cost-probe.mjs), the
// engines' by turns.
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { engineEnvironment, engineFolder, engineName } from '../../scripts/lib/engine.mjs';
import { run } from '../../scripts/lib/run.mjs';
import { addModel } from '../architectures/add.mjs';
import { architecture, workloads } from '../architectures/workloads.mjs';
import { hasMatrixUnit, rates, ratesProgram } from './machine.mjs';
import { median } from './statistics.mjs';

const probePath = fileURLToPath(new URL('./cost-probe.mjs', import.meta.url));

/** What a fresh process of an engine answers. */
async function ask(engine, probe, request) {
  const full = { engine: await engineFolder(engine), options: { logSeverityLevel: 3 }, ...request };
  await sleep(50); // until the process before has left
  return JSON.parse(await run(process.execPath, [probePath, probe, JSON.stringify(full)], { env: engineEnvironment }));
}

/** Answers of every round, the engines by turns. */
async function inRounds(engines, rounds, probe, request) {
  const answers = engines.map(() => []);
  for (let round = 0; round < rounds; round++) {
    for (const [i, engine] of engines.entries()) answers[i].push(await ask(engine, probe, request));
  }
  return answers;
}

/** The fields of a row: medians of what `pick` finds in the answers, and with a peer the ratio of rounds. */
function numbers([ours, theirs], pick) {
  const own = ours.map(pick);
  const other = theirs?.map(pick).filter((value) => value !== undefined) ?? [];
  if (!other.length) return { ours: median(own) };
  const ratios = own.map((value, i) => other[i] / value);
  const spread = { lowest: Math.min(...ratios), highest: Math.max(...ratios) };
  return { ours: median(own), theirs: median(other), ratio: median(ratios), ...spread };
}

const peerless = ({ ours, theirs }) => ({ ours, ...(theirs !== undefined && { theirs }) });

async function calls({ engines, rounds, tiny }) {
  const answers = await inRounds(engines, rounds, 'call', { path: tiny });
  const [own] = answers;
  const rows = [
    { name: 'one Add, `runSync`', unit: 'µs', ...numbers([own], (a) => a.runSync), goal: { most: 3 } },
    { name: 'one Add, `await run`', unit: 'µs', ...numbers(answers, (a) => a.run), goal: { most: 15 } },
  ];
  return rows.filter(({ ours }) => ours !== undefined); // the peer has no runSync
}

async function start({ engines, rounds, tiny }) {
  const answers = await inRounds(engines, rounds, 'start', { path: tiny });
  const name = '`require` and a first session of one Add';
  return [{ name, unit: 'ms', ...numbers(answers, (a) => a.milliseconds), goal: { times: 2 } }];
}

async function idle({ engines, rounds }) {
  const feeds = Object.fromEntries(
    ['input_ids', 'attention_mask', 'token_type_ids'].map((name) => [
      name,
      { type: 'int64', data: new Array(16).fill(1), dims: [1, 16] },
    ]),
  );
  const path = await architecture('minilm_l6');
  const answers = await inRounds(engines, rounds, 'idle', { path, feeds });
  const name = "processor time of the engine's threads in the second after a run";
  // A hundredth of a percent of one processor: ten times finer than the times that systems show of processes.
  return [{ name, unit: 'ms', ...peerless(numbers(answers, (a) => a.milliseconds)), goal: { most: 0.1 } }];
}

const decoder = { layers: 12, heads: 12, past: 255, steps: 96 };

const decode =
  (kept, name) =>
  async ({ engines, rounds }) => {
    const request = { path: await architecture('gpt2'), ...decoder, kept };
    const [own] = await inRounds(engines.slice(0, 1), rounds, 'grow', request);
    return [{ name, unit: 'µs', ours: median(own.map(({ extra }) => 1000 * extra)), goal: { most: 150 } }];
  };

/** Bytes of a model's weights, which lie in a file beside it. */
function weightsOf(path) {
  const folder = dirname(path);
  const files = readdirSync(folder).filter((name) => name.endsWith('.bin'));
  return files.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
}

const load =
  (model) =>
  async ({ engines, rounds, tiny }) => {
    const path = await architecture(model);
    for (const engine of engines) await ask(engine, 'load', { path }); // the file's pages are in memory from here on
    const times = await inRounds(engines, rounds, 'load', { path });
    const memory = await inRounds(engines, Math.min(rounds, 3), 'load', { path, tiny });
    const rows = [{ name: `${model}: load`, unit: 'ms', ...numbers(times, (a) => a.milliseconds), goal: { times: 2 } }];
    if (memory[0][0].resident === undefined) return rows; // only Linux says
    const weights = weightsOf(path);
    const resident = {
      ...peerless(numbers(memory, (a) => a.resident / weights)),
      goal: { most: hasMatrixUnit() ? 1.6 : 1.1 },
    };
    const peak = { ...peerless(numbers(memory, (a) => a.peak / a.resident)), goal: { most: 1.25 } };
    return [
      ...rows,
      { name: `${model}: memory after it, of the weights`, unit: 'times', ...resident },
      { name: `${model}: most memory during it, of that after it`, unit: 'times', ...peak },
    ];
  };

async function cached({ engines, rounds, folder }) {
  const path = await architecture('bert_base');
  const options = { logSeverityLevel: 3, modelCacheDir: join(folder, 'cache') };
  await ask(engines[0], 'load', { path, options }); // writes the cache
  const [own] = await inRounds(engines.slice(0, 1), rounds, 'load', { path, options });
  const name = 'bert_base: load from `modelCacheDir`';
  return [{ name, unit: 'ms', ...numbers([own], (a) => a.milliseconds), goal: { most: 60 } }];
}

const needed = { avx2: 0.8, avx512: 0.8, amx: 0.6 };

async function kernels({ rounds }) {
  if (process.arch !== 'x64') return []; // the program has loops for its instructions only
  const program = await ratesProgram();
  const all = [];
  for (let round = 0; round < rounds; round++) all.push(await rates(program));
  return Object.keys(all[0]).map((target) => ({
    name: `product of 1024^3, ${target}, of the rate of its multiply-adds`,
    unit: 'share',
    ours: median(all.map((said) => said[target].gemm / said[target].peak)),
    goal: { least: needed[target] },
  }));
}

/** What tests hold, on every machine that runs them: where each stands, and its name. */
export const accuracyTests = [
  {
    name: 'products, error over the sum of absolute terms: `highest` twice plain float32, `high` 2^-15',
    file: 'test/native/microkernels/gemm/gemm.test.cpp',
    test: 'gemm is as exact as its precision says, whatever the numbers',
  },
  {
    name: 'products with infinities and NaN: as IEEE 754 has them',
    file: 'test/native/microkernels/gemm/gemm.test.cpp',
    test: 'gemm carries NaN and infinity through, clamping included',
  },
  {
    name: 'transformed convolutions: as exact as plain ones',
    file: 'test/native/microkernels/winograd/winograd.test.cpp',
    test: 'winograd is as exact as the plain kernel, relative to the terms of each sum',
  },
  {
    name: 'exp, erf, tanh, log: 2 units in the last place',
    file: 'test/native/microkernels/elementwise/elementwise.test.cpp',
    test: 'unary loops are accurate over their range',
  },
  {
    name: 'softmax, layer normalisation, GELU: no worse than plain float32 code',
    file: 'test/native/microkernels/reduce/reduce.test.cpp',
    test: 'softmax, normalisations and gelu are no worse than plain float32 code',
  },
];

const accuracy = async () => accuracyTests.map(({ name, file, test }) => ({ name, test: `${file}: ${test}` }));

const loaded = [...new Set(workloads.map(({ model }) => model))];

/** All that is measured: names for --only, and functions that give rows. */
export const costs = [
  { name: 'calls', measure: calls },
  { name: 'start', measure: start },
  { name: 'idle', measure: idle },
  {
    name: 'decode kept',
    measure: decode(true, 'gpt2, step that is one longer: extra, `runSync` into kept memory'),
  },
  {
    name: 'decode fed back',
    measure: decode(false, 'gpt2, step that is one longer: extra, `await run`, results fed back'),
  },
  ...loaded.map((model) => ({ name: `load ${model}`, measure: load(model) })),
  { name: 'load cached', measure: cached },
  { name: 'kernels', measure: kernels },
  { name: 'accuracy', measure: accuracy },
];

/**
 * The rows of what is chosen, each handed to `print` when it is there.
 * @param {{ measure: Function, name: string }[]} chosen
 * @param {{ peer: string, rounds: number }} options
 */
export async function measureCosts(chosen, { peer, rounds }, print) {
  const folder = mkdtempSync(join(tmpdir(), 'infernode-costs-'));
  const tiny = join(folder, 'add.onnx');
  writeFileSync(tiny, addModel());
  const context = { engines: [engineName(), ...(peer === 'none' ? [] : ['peer'])], rounds, folder, tiny };
  const rows = [];
  try {
    for (const { name, measure } of chosen) {
      const found = await measure(context).catch((error) => [{ name, failed: error.message }]);
      for (const row of found) print(row);
      rows.push(...found);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  return rows;
}
