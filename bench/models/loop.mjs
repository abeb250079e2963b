#!/usr/bin/env node
// How long `create` and `run` keep the event loop from turning, for each of the architectures.
//
// usage: node bench/models/loop.mjs [--only PATTERN] [--runs N]
//
// A stop is the time between two turns of the loop while a call is pending: what the call does before it returns, what is done
// when the result comes, and what V8 collects meanwhile, which stands in a column of its own: large results that the caller has
// dropped are collected in the same turns. Times are wall time in milliseconds: on a busy machine they hold the time of others.
import { PerformanceObserver } from 'node:perf_hooks';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { loadEngine } from '../../scripts/lib/engine.mjs';
import { toFeeds } from '../../scripts/lib/values.mjs';
import { architecture, workloads } from '../architectures/workloads.mjs';
import { median } from './statistics.mjs';

const { values } = parseArgs({ options: { only: { type: 'string' }, runs: { type: 'string', default: '15' } } });

const collections = [];
new PerformanceObserver((list) => collections.push(...list.getEntries())).observe({ entryTypes: ['gc'] });

/** The longest stop while the promise of `call` is pending, and how much of it was collection of garbage. */
async function longestStop(call) {
  await sleep(20);
  const turns = [];
  let last = performance.now();
  let pending = true;
  const settled = call().finally(() => {
    pending = false;
  });
  while (pending) {
    await turn();
    const now = performance.now();
    if (now - last > 0.1) turns.push([last, now]); // a list of all would be a stop itself, when it grows
    last = now;
  }
  await settled;
  await sleep(20); // until the collections are reported
  const stops = turns.map(([begin, end]) => {
    const within = collections.filter(({ startTime }) => startTime >= begin && startTime < end);
    const collecting = within.reduce((sum, { duration }) => sum + duration, 0);
    return { own: end - begin - collecting, collecting };
  });
  collections.length = 0;
  return stops.reduce((most, stop) => (stop.own > most.own ? stop : most), { own: 0, collecting: 0 });
}

const { InferenceSession, Tensor } = await loadEngine();
const only = new RegExp(values.only ?? '');
const cell = (value) => value.toFixed(2).padStart(8);
console.log(`${''.padEnd(24)} MB in  MB out   create first run    run (of it collecting)   worst`);
for (const { name, model, inputs, fetches } of workloads.filter((item) => only.test(item.name))) {
  const path = await architecture(model);
  let session;
  const create = await longestStop(async () => {
    session = await InferenceSession.create(path, { intraOpNumThreads: 1 });
  });
  const feeds = toFeeds({ Tensor }, inputs(7));
  const bytes = (tensors) => Object.values(tensors).reduce((sum, { data }) => sum + data.byteLength, 0) / 1e6;
  let out;
  const run = () =>
    longestStop(async () => {
      out = bytes(await session.run(feeds, fetches));
    });
  const first = await run();
  const stops = [];
  for (let i = 0; i < Number(values.runs); i++) stops.push(await run());
  const own = stops.map((stop) => stop.own);
  console.log(
    `${name.padEnd(22)}${cell(bytes(feeds))}${cell(out)} ${cell(create.own)}  ${cell(first.own)}${cell(median(own))} ` +
      `(${median(stops.map((stop) => stop.collecting)).toFixed(2)})`.padEnd(17) +
      cell(Math.max(...own)),
  );
  await session.release();
}
