#!/usr/bin/env node
// What a run takes whose inputs and outputs stay on the GPU, as JavaScript sees it: float16 unless --type float32.
//
// usage: node bench/cuda/times.mjs [--only PATTERN] [--type float16|float32] [--runs N] [--provider NAME]
import { parseArgs } from 'node:util';
import { loadEngine } from '../../scripts/lib/engine.mjs';
import { toFeeds } from '../../scripts/lib/values.mjs';
import { architecture, asHalf, halfArchitecture, onGpu, workloads } from '../architectures/workloads.mjs';
import { bound, percentile, timesOf } from './bound.mjs';

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    type: { type: 'string', default: 'float16' },
    runs: { type: 'string', default: '1000' },
    provider: { type: 'string', default: 'cuda' },
  },
});
const half = values.type === 'float16';
const ort = await loadEngine();
const only = new RegExp(values.only);
console.log(`${values.type.padEnd(28)}  bound run()        p99   runSync()   ms`);
for (const { name, model, inputs } of [...workloads, ...onGpu].filter((item) => only.test(item.name))) {
  const path = await (half ? halfArchitecture(model) : architecture(model));
  const session = await ort.InferenceSession.create(path, { executionProviders: [values.provider, 'cpu'] });
  const feeds = inputs(1);
  const binding = bound(session, toFeeds(ort, half ? asHalf(feeds) : feeds));
  const times = await timesOf(() => binding.run(), Number(values.runs));
  const sync = await timesOf(() => binding.runSync(), Number(values.runs));
  const cells = [percentile(times, 0.5), percentile(times, 0.99), percentile(sync, 0.5)];
  const elsewhere = session.placement.filter(({ provider }) => provider === 'cpu').map(({ opType }) => opType);
  const note = elsewhere.length ? `   on the CPU: ${[...new Set(elsewhere)].join(' ')}` : '';
  console.log(`${name.padEnd(28)}  ${cells.map((ms) => ms.toFixed(3).padStart(11)).join('')}${note}`);
  await session.release();
}
