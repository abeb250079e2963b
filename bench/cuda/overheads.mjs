#!/usr/bin/env node
// What JavaScript adds to a run on the GPU: creating sessions, bound runs against fed ones, new shapes, the event loop.
//
// usage: node bench/cuda/overheads.mjs [--runs N] [--provider NAME]
//
// Times are milliseconds of wall time, medians of N runs where there are many.
import { setImmediate as turn } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { loadEngine } from '../../scripts/lib/engine.mjs';
import { toFeeds } from '../../scripts/lib/values.mjs';
import { bound, percentile, timeOf, timesOf } from './bound.mjs';
import { architecture, checks, halfArchitecture, randomNumbers } from '../architectures/workloads.mjs';

const { values } = parseArgs({
  options: { runs: { type: 'string', default: '1000' }, provider: { type: 'string', default: 'cuda' } },
});
const runs = Number(values.runs);
const ort = await loadEngine();
const options = { executionProviders: [values.provider, 'cpu'], providerFallback: false, logSeverityLevel: 3 };

const report = (what, text) => console.log(`${what.padEnd(60)} ${text}`);
const shown = (ms) => `${ms.toFixed(3)} ms`;
const feedsOf = (name) => toFeeds(ort, checks.find((check) => check.model === name).inputs(1));

async function sessions() {
  const [first, second] = [await architecture('mobilenet_v2'), await architecture('resnet50')];
  let session;
  const created = await timeOf(async () => (session = await ort.InferenceSession.create(first, options)));
  report('first session (mobilenet_v2), driver and context included', shown(created));
  report('its first run', shown(await timeOf(() => session.run(feedsOf('mobilenet_v2')))));
  let other;
  const again = await timeOf(async () => (other = await ort.InferenceSession.create(second, options)));
  report('second session (resnet50, 102 MB of weights)', shown(again));
  report('its first run, weights over PCIe included', shown(await timeOf(() => other.run(feedsOf('resnet50')))));
  return { session, other };
}

async function feeding(session) {
  const feeds = feedsOf('resnet50');
  const binding = bound(session, feeds);
  const fed = await timesOf(() => session.run(feeds), runs);
  const there = await timesOf(() => binding.run(), runs);
  const sync = await timesOf(() => binding.runSync(), runs);
  for (const [what, times] of Object.entries({ 'run()': fed, 'bound run()': there, 'bound runSync()': sync })) {
    const ends = [percentile(times, 0.5), percentile(times, 0.99)].map(shown).join(', p99 ');
    report(`resnet50 float32, 602 KB in, 4 KB out: ${what} p50`, ends);
  }
  report('host feeds and results instead of bound ones', shown(percentile(fed, 0.5) - percentile(there, 0.5)));
}

/** The longest time between two turns of the event loop while runs are pending. */
async function eventLoop() {
  const session = await ort.InferenceSession.create(await architecture('whisper_base_encoder'), options);
  const feeds = feedsOf('whisper_base_encoder');
  const binding = bound(session, feeds);
  await timesOf(() => binding.run(), 0);
  const stops = [];
  let took = 0;
  for (let i = 0; i < 50; i++) {
    let pending = true;
    const begin = performance.now();
    const settled = binding.run().finally(() => (pending = false));
    for (let last = performance.now(); pending; last = performance.now()) {
      await turn();
      stops.push(performance.now() - last);
    }
    await settled;
    took += performance.now() - begin;
  }
  report('whisper_base encoder float32: a run', shown(took / 50));
  report('longest stop of the event loop over 50 runs', shown(Math.max(...stops)));
  await session.release();
}

async function newShapes() {
  const session = await ort.InferenceSession.create(await halfArchitecture('bert_base'), options);
  const next = randomNumbers(3);
  const ids = (length, value) =>
    new ort.Tensor(
      'int64',
      BigInt64Array.from({ length }, () => BigInt(value())),
      [1, length],
    );
  const feeds = (length) => ({
    input_ids: ids(length, () => Math.floor(next() * 30522)),
    attention_mask: ids(length, () => 1),
    token_type_ids: ids(length, () => 0),
  });
  await session.run(feeds(128));
  const times = { first: [], second: [], third: [], later: [] };
  for (let length = 40; length < 60; length++) {
    const given = feeds(length);
    for (const list of Object.values(times)) list.push(await timeOf(() => session.run(given)));
  }
  for (const [what, list] of Object.entries(times))
    report(`bert_base float16, run of a new length: ${what}`, shown(percentile(list, 0.5)));
  await session.release();
}

const { session, other } = await sessions();
await feeding(other);
await eventLoop();
await newShapes();
await Promise.all([session.release(), other.release()]);
