// Shrinks a graph on which a variant differs, for as long as it does.
import { mkdirSync, writeFileSync } from 'node:fs';
import { replaced, withOutputs } from './cut.mjs';
import { fixed } from './generate.mjs';
import { differs, reference } from './trial.mjs';

/** Smaller graphs to try, the boldest first. */
function* smaller(subject, known) {
  const { graph } = subject;
  const size = graph.nodes.length;
  for (let step = size >> 1; step >= 1; step >>= 1) {
    for (let from = 0; from + step <= size; from += step) {
      const candidate = replaced(subject, (_, i) => i >= from && i < from + step, known);
      if (candidate) yield candidate;
    }
  }
  const symbols = graph.inputs.some(({ shape }) => shape.some((dim) => typeof dim === 'string'));
  if (symbols) yield { ...subject, graph: fixed(graph, subject.feeds) };
}

/**
 * @param {object} subject
 * @param {[name: string, variant: object]} variant
 * @returns {Promise<{ subject: object, found: object }>} the smallest graph that was found, and how it differs
 */
export async function minimise(engines, write, subject, variant) {
  const failing = async (candidate) => {
    const expected = await reference(engines, write, candidate);
    if (expected.fault) return undefined;
    const found = await differs(engines, write, candidate, expected, variant);
    return found && { subject: candidate, found, known: expected.known };
  };
  let best = await failing(subject);
  if (!best) return { subject, found: undefined };
  for (const output of subject.graph.outputs.length > 1 ? subject.graph.outputs : []) {
    const alone = await failing(withOutputs(subject, [output]));
    if (!alone) continue;
    best = alone;
    break;
  }
  for (let smallest = false; !smallest && best.known;) {
    smallest = true;
    for (const candidate of smaller(best.subject, best.known)) {
      const next = await failing(candidate);
      if (!next) continue;
      best = next;
      smallest = false;
      break;
    }
  }
  return best;
}

const json = (key, value) => {
  if (typeof value === 'bigint' || (typeof value === 'number' && !Number.isFinite(value))) return String(value);
  return ArrayBuffer.isView(value) ? [...value] : value;
};

/** Writes what was found to a folder: the model, its feeds and a few lines. */
export function keep(folder, write, { graph, feeds }, found) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${folder}/model.onnx`, write(graph));
  writeFileSync(`${folder}/feeds.json`, JSON.stringify(feeds, json));
  const nodes = graph.nodes.map(
    ({ op, inputs, outputs, attributes }) =>
      `  ${outputs} = ${op}(${inputs}) ${JSON.stringify(attributes ?? {}, json).slice(0, 300)}`,
  );
  const values = [
    ...graph.inputs.map((each) => [each, 'input']),
    ...graph.initializers.map((each) => [each, 'constant']),
  ];
  const lines = values.map(([{ name, type, dims, shape }, what]) => `  ${name}: ${what} ${type}[${dims ?? shape}]`);
  const text = [`variant ${found.variant}, opset ${graph.opset}`, found.text, ...lines, ...nodes, ''].join('\n');
  writeFileSync(`${folder}/report.txt`, text);
  return text;
}
