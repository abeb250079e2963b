// An engine's sessions by number, run with plain values: what a process or a program of tests asks of it.
import { fromEngine, toFeeds } from './values.mjs';

/** @param {typeof import('onnxruntime-common')} ort */
export function engineOperations(ort) {
  const sessions = new Map();
  const inputs = new Map(); // feeds kept for `time`, by session
  let nextSession = 1;
  return {
    async create({ model, options }) {
      const session = await ort.InferenceSession.create(model, options);
      const id = nextSession++;
      sessions.set(id, session);
      const { inputNames, outputNames } = session;
      const placement = session.placement?.map(({ opType, provider }) => ({ opType, provider }));
      return { id, inputNames: [...inputNames], outputNames: [...outputNames], placement };
    },
    async run({ id, feeds, fetches }) {
      const session = sessions.get(id);
      const tensors = toFeeds(ort, feeds);
      const results = await (fetches ? session.run(tensors, fetches) : session.run(tensors));
      return Object.fromEntries(Object.entries(results).map(([name, value]) => [name, fromEngine(value)]));
    },
    async feed({ id, feeds }) {
      inputs.set(id, toFeeds(ort, feeds));
    },
    /** Milliseconds of each of `count` runs of the feeds given before. */
    async time({ id, count, fetches }) {
      const session = sessions.get(id);
      const feeds = inputs.get(id);
      const times = [];
      for (let i = 0; i < count; i++) {
        const start = performance.now();
        await (fetches ? session.run(feeds, fetches) : session.run(feeds));
        times.push(performance.now() - start);
      }
      return times;
    },
    async release({ id }) {
      await sessions.get(id).release();
      sessions.delete(id);
      inputs.delete(id);
    },
  };
}
