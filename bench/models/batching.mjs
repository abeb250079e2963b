#!/usr/bin/env node
// How many calls a second a session answers to clients that wait for each answer before they ask again: each call a run of its
// own, and joined by createBatcher.
//
// usage: npm run bench:batching -- [--model minilm_l6] [--length 8] [--clients 1,8,32] [--batch 32] [--seconds 3] [--rounds 3]
import { parseArgs } from 'node:util';
import { loadEngine } from '../../scripts/lib/engine.mjs';
import { runMain } from '../../scripts/lib/project.mjs';
import { architecture, randomNumbers } from '../architectures/workloads.mjs';
import { thisMachine } from './machine.mjs';
import { median } from './statistics.mjs';

/** Feeds of a BERT: a sentence of `length` tokens. */
function sentence({ Tensor }, length, next) {
  const integers = (value) =>
    new Tensor(
      'int64',
      BigInt64Array.from({ length }, () => BigInt(value())),
      [1, length],
    );
  return {
    input_ids: integers(() => Math.floor(next() * 30522)),
    attention_mask: integers(() => 1),
    token_type_ids: integers(() => 0),
  };
}

/** Calls a second, milliseconds of processor time a call, and how long nine of ten take at most, of `clients` that each ask again when they are answered. */
async function rate(answer, feeds, clients, seconds) {
  const end = performance.now() + seconds * 1000;
  const times = [];
  const client = async (i) => {
    for (let begin = performance.now(); begin < end; begin = performance.now()) {
      await answer(feeds[i++ % feeds.length]);
      times.push(performance.now() - begin);
    }
  };
  const begin = performance.now();
  const busy = process.cpuUsage();
  await Promise.all(Array.from({ length: clients }, (_, i) => client(i)));
  const perSecond = (1000 * times.length) / (performance.now() - begin);
  const { user, system } = process.cpuUsage(busy);
  times.sort((a, b) => a - b);
  return { perSecond, busy: (user + system) / 1000 / times.length, late: times[Math.floor(0.9 * times.length)] };
}

runMain(async () => {
  const { values } = parseArgs({
    options: {
      model: { type: 'string', default: 'minilm_l6' },
      length: { type: 'string', default: '8' },
      clients: { type: 'string', default: '1,8,32' },
      batch: { type: 'string', default: '32' },
      seconds: { type: 'string', default: '3' },
      rounds: { type: 'string', default: '3' },
    },
  });
  const ort = await loadEngine('infernode');
  const session = await ort.InferenceSession.create(await architecture(values.model), { logSeverityLevel: 3 });
  const next = randomNumbers(1);
  const feeds = Array.from({ length: 64 }, () => sentence(ort, Number(values.length), next));
  console.log(
    `${values.model}, sentences of ${values.length} tokens, batches of ${values.batch} at most, ${thisMachine()}`,
  );
  console.log(
    'clients  calls/s alone  calls/s joined  ratio  CPU alone  CPU joined  p90 alone  p90 joined  rows a run',
  );
  for (const clients of values.clients.split(',').map(Number)) {
    const batcher = ort.createBatcher(session, { maxBatch: Number(values.batch), maxDelayMs: 1 });
    const [alone, joined] = [[], []];
    for (let round = 0; round <= Number(values.rounds); round++) {
      const seconds = round === 0 ? 0.5 : Number(values.seconds); // the first makes plans for the shapes
      const results = [
        await rate((given) => session.run(given), feeds, clients, seconds),
        await rate((given) => batcher.run(given), feeds, clients, seconds),
      ];
      if (round > 0) [alone, joined].forEach((all, i) => all.push(results[i]));
    }
    const { rows, runs } = batcher.stats;
    const of = (all, key) => median(all.map((each) => each[key]));
    const [a, j] = [of(alone, 'perSecond'), of(joined, 'perSecond')];
    const columns = [clients, a.toFixed(1), j.toFixed(1), (j / a).toFixed(2), `${of(alone, 'busy').toFixed(2)} ms`, `${of(joined, 'busy').toFixed(2)} ms`, `${of(alone, 'late').toFixed(1)} ms`, `${of(joined, 'late').toFixed(1)} ms`, (rows / runs).toFixed(1)]; // prettier-ignore
    console.log(columns.map((text, i) => String(text).padStart([7, 14, 15, 6, 10, 11, 10, 11, 11][i])).join(' '));
    await batcher.close();
  }
  await session.release();
});
