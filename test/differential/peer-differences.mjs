// Where onnxruntime-node differs from the standard, or from what docs/differences.md says this engine does.
import { readsOf } from './generate.mjs';
import { decode, isFloat } from './numbers.mjs';

const plainOf = (name, graph, known) => known[name] ?? graph.initializers.find((each) => each.name === name);
/** Whether a node reads NaN or an infinity. */
const reads = (test) => (node, graph, known) =>
  node.inputs.some((name) => {
    const value = plainOf(name, graph, known);
    return value && isFloat(value.type) && decode(value).some((number) => test(number));
  });
const beyond = reads((number) => !Number.isFinite(number));
const whole = ({ inputs }, graph, known) => !isFloat(plainOf(inputs[0], graph, known).type);

/** @type {{ op: string, when?: (node: object, graph: object, known: object) => boolean, reason: string }[]} */
export const peerDifferences = [
  { op: 'StringSplit', reason: 'without a delimiter it splits at spaces only; with one an empty string has no piece' },
  { op: 'Softsign', when: beyond, reason: 'NaN of an infinity, whose limit is 1 or -1' },
  { op: 'LogSoftmax', when: beyond, reason: 'of float64 NaN and infinities stay where they are instead of making all NaN' },
  { op: 'ReduceProd', when: whole, reason: 'products of integers that overflow saturate, where numpy wraps around' },
];

/** Whether a known difference may explain that of an output: a node that it depends on is in the list. */
export function knownOfPeer(graph, output, known) {
  const needed = new Set([output]);
  for (const node of [...graph.nodes].reverse()) {
    if (!node.outputs.some((name) => needed.has(name))) continue;
    readsOf(node).forEach((name) => needed.add(name));
    if (peerDifferences.some(({ op, when }) => op === node.op && (!when || when(node, graph, known)))) return true;
  }
  return false;
}
