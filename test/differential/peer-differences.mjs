// Where onnxruntime-node differs from the standard, or from what docs/differences.md says this engine does.
import { readsOf } from './generate.mjs';

/** @type {{ op: string, when?: (node: object) => boolean, reason: string }[]} */
export const peerDifferences = [];

/** Whether a known difference may explain that of an output: an operator that it depends on is in the list. */
export function knownOfPeer(graph, output, known) {
  const needed = new Set([output]);
  for (const node of [...graph.nodes].reverse()) {
    if (!node.outputs.some((name) => needed.has(name))) continue;
    readsOf(node).forEach((name) => needed.add(name));
    if (peerDifferences.some(({ op, when }) => op === node.op && (!when || when(node, graph, known)))) return true;
  }
  return false;
}
