// Works without pause in a worker, or in a process that ends as told: exit | throw | reject.
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';

const ort = createRequire(import.meta.url)(fileURLToPath(new URL('../../..', import.meta.url)));
const model = workerData?.model ?? Buffer.from(process.env.MODEL, 'base64');
const n = 64;
const x = new ort.Tensor('float32', new Float32Array(n * n).fill(1 / n), [n, n]);
const tiny = new ort.Tensor('float32', [1, 0, 0, 1], [2, 2]);
const session = await ort.InferenceSession.create(model);
const target = new ort.Tensor('float32', new Float32Array(n * n), [n, n]);

async function work() {
  for (;;) {
    const controller = new AbortController();
    const aborted = session.run({ x }, { signal: controller.signal }).catch(() => undefined);
    const making = ort.InferenceSession.create(model).then((other) => other.release());
    controller.abort();
    session.runSync({ x: tiny });
    await Promise.all([
      session.run({ x }),
      session.run({ x: tiny }),
      session.run({ x }, { y: target }),
      aborted,
      making,
    ]);
  }
}

const working = work();
parentPort?.postMessage('working');
if (!parentPort) {
  const how = process.argv[2];
  setTimeout(() => {
    if (how === 'exit') process.exit(0);
    if (how === 'throw') throw new Error('on purpose');
    void Promise.reject(new Error('on purpose'));
  }, 50);
}
await working;
