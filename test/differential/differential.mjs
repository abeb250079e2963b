// Runs random graphs of 10 to 30 nodes in many ways, and holds the answers against those of the plainest way: no
// optimization, one thread. What differs is shrunk and kept in build/differential/.
//
// usage: npm run differential -- [--count N] [--seed S] [--variant NAME] [--replay SEED]
//   --count     how many graphs (100)
//   --seed      the first graph's seed (1); the others follow
//   --variant   that variant alone: disabled, basic, extended, all, threads, parallel, again, memory, fixed, a rung of
//               INFERNODE_CPU, high, medium, onnx, ort, cache or peer
//   --replay    that graph alone, with what was found of it
import { parseArgs } from 'node:util';
import { isMain, at, runMain, say } from '../../scripts/lib/project.mjs';
import { rungsOfMachine } from '../../scripts/lib/engine-process.mjs';
import { Engines, modelWriter } from './engines.mjs';
import { generate } from './generate.mjs';
import { keep, minimise } from './minimise.mjs';
import { trial } from './trial.mjs';
import { variantsOf } from './variants.mjs';

const folder = at('build', 'differential');
/** So many graphs are under way at a time: processes that others keep waiting have something to do. */
const width = 6;

/** Makes what was found small and keeps it; gives the report. */
async function shrunk(engines, write, subject, found, variants) {
  const variant = variants.find(([name]) => name === found.variant);
  const small =
    variant && !found.text.includes('no answer within') && (await minimise(engines, write, subject, variant));
  const [least, text] = small?.found ? [small.subject, small.found] : [subject, found];
  return keep(`${folder}/${subject.seed}-${found.variant}`, write, least, text);
}

/**
 * @param {{ seed: number, count: number, variant?: string, peer?: boolean, shrink?: boolean, onGraph?: (result: object) => void }} plan
 * @returns {Promise<{ graphs: number, refused: number, differences: object[], faults: object[] }>}
 */
export async function sweep({ seed, count, variant, peer = true, shrink = true, onGraph }) {
  const write = await modelWriter(folder);
  const engines = new Engines(`${folder}/run-${process.pid}`);
  const totals = { graphs: 0, refused: 0, differences: [], faults: [] };
  try {
    const known = variantsOf(await rungsOfMachine());
    if (variant && !known[variant])
      throw new Error(`there is no variant '${variant}': ${Object.keys(known).join(', ')}`);
    const variants = Object.entries(known).filter(([name]) => (variant ? name === variant : peer || name !== 'peer'));
    let next = 0;
    const work = async () => {
      while (next < count) {
        const subject = generate(seed + next++);
        const { refused, found } = await trial(engines, write, subject, variants);
        totals.graphs++;
        if (refused) totals.refused++;
        for (const each of found) {
          (each.fault ? totals.faults : totals.differences).push({ seed: subject.seed, ...each });
          if (shrink) each.report = await shrunk(engines, write, subject, each, variants);
        }
        onGraph?.({ subject, refused, found, totals });
      }
    };
    await Promise.all(Array.from({ length: width }, work));
    if (engines.faults.length > 0 && engines.explained === 0)
      totals.faults.push({ text: `of no graph alone: ${engines.faults[0]}` });
  } finally {
    await engines.stop();
  }
  return totals;
}

const whole = (values, key) => {
  const value = Number(values[key]);
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`--${key} takes a whole number, got '${values[key]}'`);
  return value;
};

async function main() {
  const { values } = parseArgs({
    options: {
      count: { type: 'string', default: '100' },
      seed: { type: 'string', default: '1' },
      variant: { type: 'string' },
      replay: { type: 'string' },
    },
  });
  const replay = values.replay !== undefined;
  let told = Date.now();
  const { graphs, refused, differences, faults } = await sweep({
    seed: whole(values, replay ? 'replay' : 'seed'),
    count: replay ? 1 : whole(values, 'count'),
    variant: values.variant,
    onGraph({ subject, refused, found, totals }) {
      if (replay)
        subject.graph.nodes.forEach(({ op, inputs, outputs }) => console.log(`${outputs} = ${op}(${inputs})`));
      if (refused) say(`seed ${subject.seed}: refused, ${refused}`);
      for (const { variant, text, report } of found) say(`seed ${subject.seed}, ${variant}: ${report ?? text}`);
      if (Date.now() - told < 30_000) return;
      told = Date.now();
      say(`${totals.graphs} graphs, ${totals.differences.length} differences, ${totals.faults.length} faults`);
    },
  });
  if (refused) say(`${refused} graphs were refused in every way`);
  console.log(`${graphs} graphs, ${differences.length} differences, ${faults.length} faults`);
  if (differences.length + faults.length > 0) process.exitCode = 1;
}

if (isMain(import.meta.url)) runMain(main);
