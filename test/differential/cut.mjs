// Smaller graphs that compute the same: nodes give way to inputs that hold what they computed.
import { pruned, readsOf } from './generate.mjs';

const infoOf = ({ name, type, dims }) => ({ name, type, shape: dims });
/** Whether a value can be a graph input: sequences cannot go to every variant. */
const feedable = (value) => value && !Array.isArray(value) && !value.type.startsWith('float8');

/**
 * The subject whose nodes that `gone` picks are replaced by what they computed; undefined where that cannot be.
 * @param {object} subject graph and feeds
 * @param {(node: object, index: number) => boolean} gone
 * @param {Record<string, object>} known plain values by name
 */
export function replaced({ graph, feeds, ...rest }, gone, known) {
  const away = graph.nodes.filter(gone);
  const kept = graph.nodes.filter((node) => !away.includes(node));
  const given = new Set(away.flatMap(({ outputs }) => outputs));
  if (kept.length === 0 || graph.outputs.some(({ name }) => given.has(name))) return undefined;
  const read = new Set(kept.flatMap(readsOf));
  const values = [...given]
    .filter((name) => name !== '' && read.has(name))
    .map((name) => {
      const constant = away.find(({ op, outputs }) => op === 'Constant' && outputs[0] === name);
      return [name, constant ? constant.attributes.value : known[name]];
    });
  if (values.some(([, value]) => !feedable(value))) return undefined;
  const inputs = [...graph.inputs, ...values.map(([name, value]) => infoOf({ name, ...value }))];
  const small = pruned({ ...graph, nodes: kept, inputs });
  return { ...rest, graph: small, feeds: feedsOf(small, { ...feeds, ...Object.fromEntries(values) }) };
}

/** Of some feeds those that a graph takes. */
export const feedsOf = (graph, feeds) => Object.fromEntries(graph.inputs.map(({ name }) => [name, feeds[name]]));

/** The subject with other outputs, and without what they do not need. */
export function withOutputs(subject, outputs) {
  const graph = pruned({ ...subject.graph, outputs });
  return { ...subject, graph, feeds: feedsOf(graph, subject.feeds) };
}
