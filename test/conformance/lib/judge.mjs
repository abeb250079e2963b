// Runs cases in child processes and says of each whether it passed, failed or is not implemented.
import { join } from 'node:path';
import { EngineCrash, EngineProcess } from '../../../scripts/lib/engine-process.mjs';
import { difference } from './compare.mjs';
import { readDataSets, readTolerance } from './suite.mjs';

/** How onnxruntime-node, whose errors have no code, words a refusal. */
const peerRefusal =
  /Could not find an implementation|is not a registered function|Unsupported data type|Non tensor type|not supported|NOT_IMPLEMENTED|No Op registered|No opset import|ValidateOpsetForDomain|but received a tensor|Tensor must be an object|Tensor.dims must be an array|expects float type data|Unsupported model IR version/i;

const isRefusal = (engine, error) =>
  error.code === 'UNSUPPORTED_OPERATOR' || (engine === 'peer' && peerRefusal.test(error.message));

/**
 * One case, start to end, in an EngineProcess or what answers as one.
 * @returns {Promise<{ outcome: 'passed' | 'failed' | 'not implemented', reason?: string, onDevice?: string[] }>}
 *   onDevice: operators of the nodes that another provider than the CPU's has
 * @throws {EngineCrash} when the process ended
 */
export async function judge(process, item, { engine, session, timeout, tolerances = {} }) {
  const tolerance = readTolerance(item);
  const toleranceOf = (value) => tolerances[value?.type] ?? tolerance;
  let id;
  let onDevice;
  try {
    const created = await process.create(join(item.folder, 'model.onnx'), session, timeout);
    id = created.id;
    onDevice = created.placement?.filter(({ provider }) => provider !== 'cpu').map(({ opType }) => opType);
    for (const { inputs, outputs } of readDataSets(item)) {
      const answers = await process.run(id, inputs, undefined, timeout);
      for (const { name, value } of outputs) {
        const wrong = difference(answers[name], value, toleranceOf(value), item.random, name);
        if (wrong) return { outcome: 'failed', onDevice, reason: `wrong answer:${wrong}` };
      }
    }
    return { outcome: 'passed', onDevice };
  } catch (error) {
    if (error instanceof EngineCrash) throw error;
    if (isRefusal(engine, error)) return { outcome: 'not implemented', reason: error.message };
    return { outcome: 'failed', onDevice, reason: `${error.code ?? error.name}: ${error.message}` };
  } finally {
    if (id !== undefined && process.alive) await process.release(id).catch(() => {});
  }
}

/**
 * Judges all cases on `jobs` processes at once; a crash fails the case it happens in and costs no other.
 * @param {import('./suite.mjs').Case[]} cases
 * @param {{ engine: string, session?: object, env?: Record<string, string>, jobs?: number, timeout?: number,
 *   onResult?: (result: object) => void, begin?: (process: EngineProcess) => Promise<unknown>,
 *   tolerances?: Record<string, { rtol: number, atol: number }> }} options `timeout` in milliseconds a step; `begin` is
 *   done in each process before its first case; `tolerances`, by element type, in place of the cases' own
 */
export async function judgeAll(
  cases,
  { engine, session = {}, env = {}, jobs = 2, timeout = 120_000, onResult, begin = async () => {}, tolerances = {} },
) {
  const queue = [...cases];
  const results = [];
  async function work() {
    let process;
    for (let item = queue.shift(); item; item = queue.shift()) {
      if (!process?.alive) {
        process = await EngineProcess.start(engine, env);
        await begin(process);
      }
      const started = performance.now();
      const verdict = await judge(process, item, { engine, session, timeout, tolerances }).catch((error) => ({
        outcome: 'failed',
        reason: `crash: ${error.message}`,
      }));
      const { kind, name, operator } = item;
      const result = { kind, name, operator, ...verdict, ms: Math.round(performance.now() - started) };
      results.push(result);
      onResult?.(result);
    }
    await process?.stop();
  }
  await Promise.all(Array.from({ length: Math.max(1, jobs) }, work));
  return results.sort((a, b) => (a.kind + a.name < b.kind + b.name ? -1 : 1));
}

/** Counts of the three outcomes. */
export function tally(results) {
  const count = (outcome) => results.filter((result) => result.outcome === outcome).length;
  return { passed: count('passed'), failed: count('failed'), notImplemented: count('not implemented') };
}
