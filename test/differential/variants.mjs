// The ways in which a graph runs that must not differ from the plainest: no optimization, one thread.
import { mkdirSync, rmSync } from 'node:fs';
import { unit } from './numbers.mjs';
import { replaced, withOutputs } from './cut.mjs';
import { fixed } from './generate.mjs';

export const plain = { graphOptimizationLevel: 'disabled', intraOpNumThreads: 1, interOpNumThreads: 1 };
const all = { ...plain, graphOptimizationLevel: 'all' };

/** Levels that a saved model was written at, by the graph's seed. */
const levels = ['basic', 'extended', 'all'];

/**
 * Saves the optimized model, and answers by what is loaded again.
 * @param {'onnx' | 'ort'} ending
 */
const saved =
  (ending) =>
  async (engines, { model, feeds, seed }) => {
    const path = `${engines.folder}/${seed}.${ending}`;
    const options = { ...all, graphOptimizationLevel: levels[seed % 3], optimizedModelFilePath: path };
    const first = await engines.play(model, feeds, { options });
    if (!first.outputs) return first;
    const again = await engines.play(path, feeds, { options: seed % 2 ? plain : all });
    rmSync(path, { force: true });
    return again.outputs ? { outputs: [...first.outputs, ...again.outputs] } : again;
  };

async function cached(engines, { model, feeds, seed }) {
  const folder = `${engines.folder}/${seed}`;
  mkdirSync(folder, { recursive: true });
  const options = { ...all, modelCacheDir: folder };
  const first = await engines.play(model, feeds, { options });
  const again = first.outputs ? await engines.play(model, feeds, { options }) : first;
  rmSync(folder, { recursive: true, force: true });
  return again.outputs ? { outputs: [...first.outputs, ...again.outputs] } : again;
}

/** Products of float32 at a lower precision. */
const precise = (float32MatmulPrecision, bits) => ({
  units: (type) => (type === 'float32' ? 2 ** -bits : unit[type]),
  run: (engines, { model, feeds }) => engines.play(model, feeds, { options: { ...all, float32MatmulPrecision } }),
});

/** The operator that a refusal of the peer names. */
const refused = /implementation for (\w+)\(|Op \((\w+)\)|operator \((\w+)\)|running (\w+) node|initializing (\w+)/;
const newestOfPeer = 24;

/** The peer runs what it takes of a graph; what else there is has been computed before. */
async function peer(engines, { graph, feeds, known, write }) {
  const tensors = graph.outputs.filter(({ kind }) => kind === 'tensor');
  let subject = withOutputs({ graph: { ...graph, opset: Math.min(graph.opset, newestOfPeer) }, feeds }, tensors);
  for (let tries = 0; tries < 8 && known && subject?.graph.outputs.length; tries++) {
    const answer = await engines.play(write(subject.graph), subject.feeds, { engine: 'peer', options: plain });
    if (answer.outputs || answer.fault) return answer;
    const op = refused.exec(answer.error)?.slice(1).find(Boolean);
    const gone = subject.graph.nodes.filter((node) => node.op === op).flatMap(({ outputs }) => outputs);
    if (!gone.length) return answer;
    subject = withOutputs(
      subject,
      subject.graph.outputs.filter(({ name }) => !gone.includes(name)),
    );
    subject = replaced(subject, (node) => node.op === op, known);
  }
  return { error: 'the peer takes nothing of it' };
}

const optioned = (options, more) => ({
  run: (engines, { model, feeds }) => engines.play(model, feeds, { options, ...more }),
});

/**
 * All variants by name; `run` answers as Engines.play does.
 * @param {string[]} rungs that this machine has
 * @returns {Record<string, { run: (engines: object, subject: object) => Promise<object>, units?: (type: string) => number }>}
 */
export function variantsOf(rungs) {
  const lower = rungs.slice(0, -1);
  return {
    disabled: optioned(plain),
    ...Object.fromEntries(levels.map((level) => [level, optioned({ ...plain, graphOptimizationLevel: level })])),
    threads: optioned({ ...all, intraOpNumThreads: 2 }),
    parallel: optioned({ ...all, intraOpNumThreads: 2, interOpNumThreads: 2, executionMode: 'parallel' }),
    again: optioned(all, { runs: 3 }),
    memory: optioned({ ...all, enableCpuMemArena: false, enableMemPattern: false }),
    fixed: {
      run: (engines, { graph, feeds, write }) => engines.play(write(fixed(graph, feeds)), feeds, { options: all }),
    },
    ...Object.fromEntries(lower.map((rung) => [rung, optioned(all, { env: { INFERNODE_CPU: rung } })])),
    high: precise('high', 16),
    medium: precise('medium', 8),
    onnx: { run: saved('onnx') },
    ort: { run: saved('ort') },
    cache: { run: cached },
    peer: { peer: true, run: peer },
  };
}
