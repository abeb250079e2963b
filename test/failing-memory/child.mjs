// Plays cases in one process: each loads a model, runs it, aborts a run and releases it while a request for memory or a
// thread fails. Says each case before it begins and its outcome after; ends by itself, or something is wrong. What a case
// left half-made is collected before the next.
//
// usage: node --expose-gc child.mjs SHIM MODELS PLAN       (PLAN: JSON, see sweep.mjs)
import { readFileSync, writeSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { engineName, loadEngine } from '../../scripts/lib/engine.mjs';

const [shim, models, planText] = process.argv.slice(2);
const plan = JSON.parse(planText);
const subject = JSON.parse(readFileSync(models, 'utf8'))[plan.model];
const bytes = Buffer.from(subject.bytes, 'base64');
const shimModule = { exports: {} };
process.dlopen(shimModule, shim);
const memory = shimModule.exports;
const patience = 20_000;

// One call at a time reaches the pipe, so that what was said is there when the process dies.
const say = (value) => writeSync(1, `${JSON.stringify(value)}\n`);

const integers = /^u?int64$/;
const feedsOf = (ort) =>
  Object.fromEntries(
    Object.entries(subject.feeds).map(([name, [type, dims, data]]) => [
      name,
      new ort.Tensor(type, integers.test(type) ? data.map(BigInt) : data, dims),
    ]),
  );

const plain = (value) =>
  Array.isArray(value) ? value.map(plain) : { type: value.type, dims: [...value.dims], data: value.data };
const answerOf = (results) => Object.fromEntries(Object.entries(results).map(([name, value]) => [name, plain(value)]));

/** Errors of onnxruntime-node have no codes. */
const uncoded = (reason) =>
  engineName() === 'peer' && reason instanceof Error ? 'an error' : `without a code: ${reason?.stack ?? reason}`;

/** What a call without an answer came to: 'right' or the code of its error. */
const plainOutcomeOf = ({ status, reason }) => (status === 'fulfilled' ? 'right' : (reason?.code ?? uncoded(reason)));

/** What a run came to: 'right', 'wrong', or the code of its error. */
const outcomeOf = ({ status, value, reason }, expected) => {
  if (status !== 'fulfilled') return plainOutcomeOf({ status, reason });
  return isDeepStrictEqual(answerOf(value), expected) ? 'right' : 'wrong';
};

const settled = async (action) => {
  try {
    return { status: 'fulfilled', value: await action() };
  } catch (reason) {
    return { status: 'rejected', reason };
  }
};

async function async_(ort, feeds, expected) {
  const session = await ort.InferenceSession.create(bytes, { logSeverityLevel: 4 });
  const controller = new AbortController();
  const runs = [session.run(feeds), session.run(feeds, { signal: controller.signal }), session.run(feeds)];
  controller.abort();
  const outcomes = (await Promise.allSettled(runs)).map((run) => outcomeOf(run, expected));
  const released = await settled(() => session.release());
  return [...outcomes, plainOutcomeOf(released)];
}

async function sync(ort, feeds, expected) {
  const session = ort.InferenceSession.createSync(bytes, { logSeverityLevel: 4 });
  const outcomes = [];
  for (let i = 0; i < 2; ++i) outcomes.push(outcomeOf(await settled(() => session.runSync(feeds)), expected));
  const released = await settled(() => session.release());
  return [...outcomes, plainOutcomeOf(released)];
}

/** The outcomes of one case; 'open' where a promise has not settled. */
async function attempt(ort, feeds, expected) {
  let watch;
  const late = new Promise((resolve) => (watch = setTimeout(resolve, patience, { value: ['open'] })));
  const work = settled(() => (plan.how === 'sync' ? sync : async_)(ort, feeds, expected));
  const { value, reason } = await Promise.race([work, late]);
  clearTimeout(watch);
  return value ?? [plainOutcomeOf({ reason })];
}

async function answer(ort) {
  const session = await ort.InferenceSession.create(bytes, { logSeverityLevel: 4 });
  const results = answerOf(await session.run(feedsOf(ort)));
  await session.release();
  return results;
}

/** A case in which the addon is loaded as well: one a process. */
async function cold(number) {
  say({ begins: number });
  memory.arm(number, plan.all);
  const loaded = await settled(() => loadEngine());
  let last = loaded;
  if (loaded.status === 'fulfilled') {
    last = await settled(() => loaded.value.InferenceSession.create(bytes, { logSeverityLevel: 4 }));
  }
  const requests = memory.disarm();
  say({ ends: number, requests, failures: memory.failures(), outcomes: [plainOutcomeOf(last)] });
  globalThis.gc();
  await turn();
}

async function warm(numbers) {
  const ort = await loadEngine();
  const expected = await answer(ort);
  const feeds = feedsOf(ort);
  await attempt(ort, feeds, expected);
  for (const number of numbers) {
    say({ begins: number });
    memory.arm(number, plan.all);
    const outcomes = await attempt(ort, feeds, expected);
    const requests = memory.disarm();
    say({ ends: number, requests, failures: memory.failures(), outcomes });
    if (outcomes.includes('open')) process.exit(3);
    globalThis.gc();
    await turn(); // finalizers run between turns of the loop
    if (requests < number) break;
  }
  // What failed before has left nothing behind.
  if (!isDeepStrictEqual(await answer(ort), expected)) throw new Error('afterwards the answer is another one');
}

function* numbersOf({ numbers, from, step }) {
  if (numbers) return yield* numbers;
  for (let number = from; ; number += step) yield number;
}

if (plan.cold) await cold(plan.numbers[0]);
else await warm(numbersOf(plan));
say({ over: true });
