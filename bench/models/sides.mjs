// The engines that are compared: each a session in a process of its own, warm, with its feeds in place.
import { EngineProcess } from '../../scripts/lib/engine-process.mjs';
import { OpenvinoProcess } from './openvino.mjs';

/**
 * @typedef {object} Side
 * @property {number} load milliseconds until the session was there
 * @property {Record<string, object>} outputs of the feeds, in plain form
 * @property {(count: number) => Promise<number[]>} time milliseconds of each of so many runs
 * @property {() => Promise<void>} stop
 */

/** What `work` makes of a process; one that cannot be used is stopped. */
async function using(process, work) {
  try {
    return { ...(await work()), stop: () => process.stop() };
  } catch (error) {
    await process.stop();
    throw error;
  }
}

/** Answers, then warms up. */
async function ready(process, id, feeds, asked, time) {
  const outputs = await process.run(id, feeds, asked);
  await process.feed(id, feeds);
  await time(2);
  return { outputs, time };
}

/**
 * An engine with the API of onnxruntime-node.
 * @param {string} engine `infernode` or `peer`
 * @param {string} path
 * @param {Record<string, object>} feeds
 * @param {{ fetches?: string[], sessionOptions: object, env?: Record<string, string> }} options
 * @returns {Promise<Side>}
 */
export async function nodeSide(engine, path, feeds, { fetches, sessionOptions, env = {} }) {
  const process = await EngineProcess.start(engine, env);
  return using(process, async () => {
    const started = performance.now();
    const { id } = await process.create(path, sessionOptions);
    const load = performance.now() - started;
    return { load, ...(await ready(process, id, feeds, fetches, (count) => process.time(id, count, fetches))) };
  });
}

/**
 * OpenVINO's CPU plugin on the same model, with its dynamic dims as they are. Its outputs are computed in float32 whatever
 * the precision that is timed, so that answers are compared with the better ones.
 * @param {string} path
 * @param {Record<string, object>} feeds
 * @param {{ fetches?: string[], names: string[], threads: number, precision: 'f32' | 'bf16' }} options names: of all outputs
 * @returns {Promise<Side>}
 */
export async function openvinoSide(path, feeds, { fetches, names, threads, precision }) {
  const process = await OpenvinoProcess.start();
  return using(process, async () => {
    let exact;
    if (precision !== 'f32') {
      const { id } = await process.create(path, { threads, precision: 'f32', outputs: fetches });
      exact = await process.run(id, feeds, names);
      await process.release(id);
    }
    const started = performance.now();
    const { id } = await process.create(path, { threads, precision, outputs: fetches });
    const load = performance.now() - started;
    const side = await ready(process, id, feeds, names, (count) => process.time(id, count));
    return { load, ...side, outputs: exact ?? side.outputs };
  });
}
