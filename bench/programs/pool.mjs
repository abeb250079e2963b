// A pool of four workers, each with a session of the one model. The main thread hands out sentences and gathers vectors.
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { loadEngine } from '../../scripts/lib/engine.mjs';
import { embed, texts } from './texts.mjs';

export const model = 'minilm_l6';
export const unit = 'sentences';

const size = 4;
const program = fileURLToPath(import.meta.url);

/** One worker, as a function from ids to a vector. */
async function open(data) {
  const worker = new Worker(program, { workerData: data });
  await once(worker, 'message');
  return {
    async embed(ids) {
      worker.postMessage(ids);
      const [vector] = await once(worker, 'message');
      return vector;
    },
    close: () => {
      worker.postMessage(null);
      return once(worker, 'exit');
    },
  };
}

export async function start({ engine, path }) {
  const workers = await Promise.all(Array.from({ length: size }, () => open({ engine, path })));
  const sentences = texts(64, 30522);
  return {
    answer: [...(await workers[0].embed(sentences[0]))].slice(0, 8),
    async work(seconds) {
      const end = performance.now() + seconds * 1000;
      let count = 0;
      const feed = async (worker) => {
        for (; performance.now() < end; count++) await worker.embed(sentences[count % sentences.length]);
      };
      await Promise.all(workers.map(feed));
      return count;
    },
    stop: () => Promise.all(workers.map((worker) => worker.close())),
  };
}

async function serve({ engine, path }) {
  const ort = await loadEngine(engine);
  const session = await ort.InferenceSession.create(path);
  parentPort.on('message', async (ids) => {
    if (ids) return parentPort.postMessage(await embed(ort, session, ids));
    await session.release();
    parentPort.close();
  });
  parentPort.postMessage('ready');
}

if (!isMainThread) await serve(workerData);
