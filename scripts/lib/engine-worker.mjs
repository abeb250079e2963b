// Child-process side of engine-process.mjs: owns sessions and answers one request at a time.
import { loadEngine } from './engine.mjs';
import { fromEngine, toFeeds } from './values.mjs';

const ort = await loadEngine();
const sessions = new Map();
let nextSession = 1;

const inputs = new Map(); // feeds kept for `time`, by session

const operations = {
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

process.on('message', async ({ serial, operation, argument }) => {
  let reply;
  try {
    reply = { serial, value: await operations[operation](argument) };
  } catch (error) {
    const { name, message, code, input, node, opType, expected, actual, path } = error;
    reply = { serial, error: { name, message, code, input, node, opType, expected, actual, path } };
  }
  process.send(reply);
});
process.on('disconnect', () => process.exit(0));
process.send({ ready: true });
