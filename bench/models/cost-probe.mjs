// What the set `costs` measures of an engine, in a process of its own: `node cost-probe.mjs PROBE REQUEST` prints the
// answer as JSON. REQUEST, also JSON, has `engine` (the folder to require) and what the probe takes. Nothing is imported
// that need not be, so that what the engine takes to start stands out.
import { createRequire } from 'node:module';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';

const require = createRequire(import.meta.url);
const [probe, request] = [process.argv[2], JSON.parse(process.argv[3])];
const now = () => performance.now();
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

const quantile = (values, part) => [...values].sort((a, b) => a - b)[Math.floor(values.length * part)];

const tensors = ({ Tensor }, feeds) =>
  Object.fromEntries(
    Object.entries(feeds).map(([name, { type, data, dims }]) => [
      name,
      new Tensor(type, type === 'int64' ? BigInt64Array.from(data, BigInt) : Float32Array.from(data), dims),
    ]),
  );

const addFeeds = (engine) =>
  tensors(engine, {
    A: { type: 'float32', data: [1, 2], dims: [1, 2] },
    B: { type: 'float32', data: [3, 4], dims: [1, 2] },
  });

/** Microseconds of a call: the median over batches of calls, after those that V8 compiles it in. */
async function callTime(batchOf) {
  const size = 200;
  const times = [];
  for (let i = 0; i < 60; i++) {
    const start = now();
    await batchOf(size);
    if (i >= 20) times.push((1000 * (now() - start)) / size);
  }
  return quantile(times, 0.5);
}

/** A line of what Linux says of this process's memory, in bytes. */
const memory = (file, line) =>
  1024 * Number(new RegExp(`^${line}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/self/${file}`, 'utf8'))[1]);

/** What is resident now: counted page by page, where the running count of `status` lags behind. */
const resident = () => memory('smaps_rollup', 'Rss');

const probes = {
  /** Milliseconds from before `require` until the first session is there. */
  async start({ engine, path, options }) {
    const begin = now();
    const { InferenceSession } = require(engine);
    await InferenceSession.create(path, options);
    return { milliseconds: now() - begin };
  },

  /** Microseconds of a run of one Add, awaited and (where the engine has it) at once. */
  async call({ engine, path, options }) {
    const module = require(engine);
    const session = await module.InferenceSession.create(path, options);
    const feeds = addFeeds(module);
    const { C } = await session.run(feeds);
    if (String(C.data) !== '4,6') throw new Error(`1 + 3, 2 + 4 gave ${C.data}`);
    const awaited = async (size) => {
      for (let i = 0; i < size; i++) await session.run(feeds);
    };
    const atOnce = (size) => {
      for (let i = 0; i < size; i++) session.runSync(feeds);
    };
    return { run: await callTime(awaited), ...(session.runSync && { runSync: await callTime(atOnce) }) };
  },

  /**
   * Milliseconds of the process's first `create`, and bytes of memory that it brought and that it held at most meanwhile.
   * Where `tiny` is given, a session of it came before: what an engine reads once a process is then not counted.
   */
  async load({ engine, path, tiny, options }) {
    const { InferenceSession } = require(engine);
    const held = [];
    const linux = process.platform === 'linux';
    const restartPeak = () => writeFileSync('/proc/self/clear_refs', '5');
    for (let i = 0; tiny && i < 2; i++) {
      held.push(await InferenceSession.create(tiny, options));
      if (linux) resident(); // what JavaScript needs to look, and for the clock, is there from here on
      now();
    }
    if (linux) restartPeak();
    const before = linux && resident();
    const begin = now();
    held.push(await InferenceSession.create(path, options));
    const milliseconds = now() - begin;
    if (!linux) return { milliseconds };
    const peak = memory('status', 'VmHWM') - before;
    return { milliseconds, resident: resident() - before, peak };
  },

  /**
   * Milliseconds of a decoder's step after as many positions as ever (`fixed`), and how much longer one takes after one
   * position more than the step before it, over `steps` of them around the fixed number. Both kinds come in mixed order, and
   * the lower quartiles of their times are compared: in some steps V8 collects. Caches that are `kept` lie in two sets of
   * the caller's own memory, written by turns with runSync; others are the results of `await run`, fed back.
   */
  async grow({ engine, path, options, layers, heads, past, steps, kept }) {
    const { InferenceSession, Tensor } = require(engine);
    const session = await InferenceSession.create(path, options);
    const names = [];
    for (let layer = 0; layer < layers; layer++) for (const part of ['key', 'value']) names.push(`${layer}.${part}`);
    const room = heads * 64 * (past + steps);
    const memory = () => names.map(() => new Float32Array(room).map((_, i) => Math.sin(i) / 2));
    const caches = (set, prefix, length) =>
      Object.fromEntries(
        names.map((name, i) => [
          `${prefix}.${name}`,
          new Tensor('float32', set[i].subarray(0, heads * 64 * length), [1, heads, length, 64]),
        ]),
      );
    const line = (length) => {
      const sets = kept ? [memory(), memory()] : [];
      let fed = kept ? undefined : caches(memory(), 'past_key_values', length);
      let turn = 0;
      return async (after, goesOn) => {
        const feeds = {
          input_ids: new Tensor('int64', BigInt64Array.of(7n), [1, 1]),
          attention_mask: new Tensor('int64', new BigInt64Array(after + 1).fill(1n), [1, after + 1]),
          ...(kept ? caches(sets[turn], 'past_key_values', after) : fed),
        };
        turn = 1 - turn;
        const fetches = kept && { logits: null, ...caches(sets[turn], 'present', after + 1) };
        const begin = now();
        const results = kept ? session.runSync(feeds, fetches) : await session.run(feeds);
        const time = now() - begin;
        if (results[`present.${names[0]}`].dims[2] !== after + 1) throw new Error('the past did not grow');
        if (goesOn && !kept)
          fed = Object.fromEntries(names.map((name) => [`past_key_values.${name}`, results[`present.${name}`]]));
        return time;
      };
    };
    let length = past - (steps >> 1);
    const stay = line(past);
    const go = line(length);
    const times = { fixed: [], growing: [] };
    const fixed = async () => times.fixed.push(await stay(past, false));
    const growing = async () => times.growing.push(await go(length++, true));
    for (let i = 0; i < 4; i++) await fixed();
    await growing();
    times.fixed = [];
    times.growing = [];
    let random = 7;
    for (let i = 1; i < steps; i++) {
      random = (Math.imul(random, 1664525) + 1013904223) >>> 0;
      for (const step of random >>> 31 ? [fixed, growing] : [growing, fixed]) await step();
    }
    const [usual, longer] = [quantile(times.fixed, 0.25), quantile(times.growing, 0.25)];
    return { fixed: usual, extra: longer - usual };
  },

  /**
   * Milliseconds of processor time that the threads which the engine started took over a second, from a millisecond after a
   * run. Node.js's own threads, which it has before the engine is loaded, are not counted.
   */
  async idle({ engine, path, options, feeds }) {
    const threads = () => readdirSync('/proc/self/task');
    const own = new Set(threads());
    const module = require(engine);
    const session = await module.InferenceSession.create(path, options);
    const given = tensors(module, feeds);
    for (let i = 0; i < 20; i++) await session.run(given);
    for (const end = now() + 1; now() < end;);
    const engines = threads().filter((thread) => !own.has(thread));
    const spent = () =>
      engines.reduce(
        (sum, thread) => sum + Number(readFileSync(`/proc/self/task/${thread}/schedstat`, 'utf8').split(' ')[0]),
        0,
      );
    const before = spent();
    await sleep(1000);
    return { milliseconds: (spent() - before) / 1e6, threads: engines.length };
  },
};

console.log(JSON.stringify(await probes[probe](request)));
process.exit(0);
