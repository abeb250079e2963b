import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { failureOf, floats, ort, tensor } from '../../fixtures/engine.js';
import { double, rounds, slow } from './models.js';

const size = 600; // a run of it takes long enough to look at what waits behind it
const square = floats(new Array(size * size).fill(1 / size), [size, size]);
const quiet = { logSeverityLevel: 4 };

/** The names of promises in the order in which they settle, while it grows. */
function orderOf(runs: Record<string, Promise<unknown>>): string[] {
  const order: string[] = [];
  for (const [name, run] of Object.entries(runs)) {
    const note = (): unknown => order.push(name);
    run.then(note, note);
  }
  return order;
}

const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await sleep(1);
};

describe('Runs in flight starve JavaScript: not those that wait for their turn', () => {
  let session: any;
  let other: any;
  beforeAll(async () => {
    ort.env.maxConcurrentRuns = 1;
    session = await ort.InferenceSession.create(slow(20), quiet);
    other = await ort.InferenceSession.create(slow(1), quiet);
    for (const each of [session, other]) await each.run({ x: square }); // what is known goes to its turn without a stop
  });
  afterAll(async () => {
    ort.env.maxConcurrentRuns = 0;
    const last = await ort.InferenceSession.create(double(), quiet);
    delete ort.env.maxConcurrentRuns;
    await Promise.all([session, other, last].map((each) => each.release()));
  });

  it('an AbortSignal or a timeout takes one that waits out at once', async () => {
    const controller = new AbortController();
    const first = session.run({ x: square });
    const aborted = failureOf(() => session.run({ x: square }, { signal: controller.signal }));
    const late = failureOf(() => session.run({ x: square }, { timeout: 20 }));
    const order = orderOf({ first, aborted, late });
    controller.abort();
    expect(await aborted).toMatchObject({ code: 'ABORTED', name: 'AbortError' });
    expect(await late).toMatchObject({ code: 'ABORTED', name: 'TimeoutError' });
    await first;
    expect(order).toEqual(['aborted', 'late', 'first']);
  });

  it('a load that waits is aborted at once', async () => {
    const controller = new AbortController();
    const first = session.run({ x: square });
    const load = failureOf(() => ort.InferenceSession.create(slow(2), { ...quiet, signal: controller.signal }));
    const order = orderOf({ first, load });
    controller.abort();
    expect(await load).toMatchObject({ code: 'ABORTED' });
    await first;
    expect(order).toEqual(['load', 'first']);
  });

  it('sessions take turns', async () => {
    const many = Array.from({ length: 6 }, () => session.run({ x: square }));
    const one = other.run({ x: square });
    const order = orderOf({ ...Object.fromEntries(many.map((run, i) => [`many ${i}`, run])), one });
    await Promise.all([...many, one]);
    expect(order.indexOf('one')).toBeLessThanOrEqual(2);
  });

  it('runs of one session settle in their order, also where JavaScript was busy meanwhile', async () => {
    const own = await ort.InferenceSession.create(slow(1), quiet);
    const runs = Array.from({ length: 6 }, () => own.run({ x: square }));
    const order = orderOf(Object.fromEntries(runs.map((run, i) => [`${i}.`, run])));
    const start = performance.now();
    while (performance.now() - start < 100) continue;
    await Promise.all(runs);
    expect(order).toEqual(['0.', '1.', '2.', '3.', '4.', '5.']);
    await own.release();
  });

  it('a session of runs without an end holds up no other', async () => {
    ort.env.maxConcurrentRuns = 2;
    const endless = await ort.InferenceSession.create(rounds(false), quiet);
    const feeds = { n: tensor('int64', BigInt64Array.of(2n ** 62n), []), x: floats([1]) };
    const controller = new AbortController();
    const runs = Array.from({ length: 5 }, () => failureOf(() => endless.run(feeds, { signal: controller.signal })));
    const loaded = await ort.InferenceSession.create(slow(1), quiet);
    await loaded.run({ x: square });
    controller.abort();
    for (const run of runs) expect(await run).toMatchObject({ code: 'ABORTED' });
    await Promise.all([endless, loaded].map((each) => each.release()));
    ort.env.maxConcurrentRuns = 1;
    await (await ort.InferenceSession.create(double(), quiet)).release();
  });

  it('ends with the session, which waits for those that wait', async () => {
    const own = await ort.InferenceSession.create(slow(2), quiet);
    await own.run({ x: square });
    const runs = Array.from({ length: 4 }, () => own.run({ x: square }));
    const order = orderOf({ last: runs[3], released: own.release() });
    await until(() => order.length === 2);
    expect(order).toEqual(['last', 'released']);
  });

  it("a session's own bound holds it back, and nobody else", async () => {
    ort.env.maxConcurrentRuns = 4;
    const narrow = await ort.InferenceSession.create(slow(20), { ...quiet, maxConcurrentRuns: 1 });
    await narrow.run({ x: square });
    const runs = [narrow.run({ x: square }), narrow.run({ x: square })];
    const order = orderOf({ first: runs[0], second: runs[1], other: other.run({ x: square }) });
    await until(() => order.length === 3);
    expect(order).toEqual(['other', 'first', 'second']);
    await narrow.release();
  });

  it('refuses bounds that are none', async () => {
    const failure = await failureOf(() => ort.InferenceSession.create(double(), { maxConcurrentRuns: -1 }));
    expect(failure).toBeInstanceOf(RangeError);
    ort.env.maxConcurrentRuns = 2000;
    expect(await failureOf(() => ort.InferenceSession.create(double()))).toBeInstanceOf(RangeError);
    ort.env.maxConcurrentRuns = 1;
  });
});

describe('Runs in flight starve JavaScript: not those that are over at once', () => {
  it.each([1, 50, 1000])(
    '%i programs that await run after run let timers and connections have their turn',
    async (n) => {
      const session = await ort.InferenceSession.create(double(), quiet);
      const feeds = { x: floats([1, 2]) };
      const most = 300_000; // half a minute and more of nothing else
      let turned = false;
      const timer = setTimeout(() => {
        turned = true;
      }, 1);
      let runs = 0;
      const program = async (): Promise<void> => {
        for (; !turned && runs < most; ++runs) await session.run(feeds);
      };
      await Promise.all(Array.from({ length: n }, program));
      clearTimeout(timer);
      await session.release();
      expect(runs).toBeLessThan(most);
    },
  );
});
