// A random graph from a seed, with its feeds.
import { Builder, NoRoom } from './builder.mjs';
import { definedForSpecial, groups, operators } from './operators/index.mjs';
import { everything, floats, integers } from './numbers.mjs';

const opsets = [20, 21, 22, 23, 24, 25, 26, 28];
const mostTries = 400;

const style = (g) => ({
  opset: g.pick(opsets),
  special: g.chance(0.12),
  empty: g.chance(0.06),
  symbolic: g.chance(0.5),
  large: g.chance(0.06),
  grouped: g.pick([0, 0.1, 0.3]),
  palette: [
    'bool',
    g.chance(0.55) ? 'float32' : g.pick(floats),
    g.pick(integers),
    ...(g.chance(0.3) ? [g.pick(everything)] : []),
  ],
});

/** Names that a node reads, those that the graphs in it read from around it among them. */
export function readsOf({ inputs, attributes = {} }) {
  const inner = Object.values(attributes).filter((value) => value?.nodes);
  return [
    ...inputs,
    ...inner.flatMap(({ nodes, outputs }) => [...nodes.flatMap(readsOf), ...outputs.map(({ name }) => name)]),
  ];
}

/** The graph without what its outputs do not need. */
export function pruned(graph) {
  const needed = new Set(graph.outputs.map(({ name }) => name));
  const nodes = graph.nodes.toReversed?.() ?? [...graph.nodes].reverse();
  const kept = nodes.filter((node) => {
    const wanted = node.outputs.some((name) => needed.has(name));
    if (wanted) readsOf(node).forEach((name) => needed.add(name));
    return wanted;
  });
  const used = ({ name }) => needed.has(name);
  return {
    ...graph,
    nodes: kept.reverse(),
    inputs: graph.inputs.filter(used),
    initializers: graph.initializers.filter(used),
  };
}

/** What of a value a model says of it. */
const described = ({ name, type, dims, kind }, shape) => ({
  name,
  type,
  kind,
  ...(shape && kind === 'tensor' && { shape: dims }),
});

/**
 * @param {number} seed
 * @returns {{ seed: number, graph: object, feeds: Record<string, object>, special: boolean, kinds: Map<string, object> }} `graph` is a
 *   ModelSpec of test/fixtures/onnx-writer.ts, `kinds` what is known of each value that a node gives
 */
export function generate(seed) {
  const g = new Builder(seed, style);
  const names = Object.keys(operators).filter(
    (name) => operators[name].since <= g.opset && (!g.special || definedForSpecial.has(name)),
  );
  const target = g.integer(10, 30);
  for (let tries = 0; g.nodes.length < target && tries < mostTries; tries++) {
    try {
      if (g.chance(g.grouped)) g.pick(groups)(g);
      else operators[g.pick(names)].make(g);
    } catch (error) {
      if (!(error instanceof NoRoom)) throw error;
    }
  }
  const read = new Set(g.nodes.flatMap(readsOf));
  const given = new Set(g.nodes.flatMap(({ op, outputs }) => (op === 'Constant' ? [] : outputs)));
  const made = g.values.filter(({ name }) => given.has(name));
  const wanted = made.filter(({ name }) => (read.has(name) ? g.chance(0.12) : g.chance(0.95)));
  const outputs = (wanted.length ? wanted : made.slice(-1)).map((value) =>
    described(value, !g.symbolic && g.chance(0.3) && value.dims),
  );
  const { nodes, inputs, initializers, opset } = g;
  const graph = pruned({ nodes, inputs, initializers, outputs, opset, opsets: { 'com.microsoft': 1 }, irVersion: 10 });
  const feeds = Object.fromEntries(graph.inputs.map(({ name }) => [name, g.feeds[name]]));
  return {
    seed,
    graph,
    feeds,
    special: g.special,
    kinds: new Map(made.map((value) => [value.name, described(value)])),
  };
}

/** The graph with the sizes of its feeds in place of symbols. */
export const fixed = (graph, feeds) => ({
  ...graph,
  inputs: graph.inputs.map((input) => ({ ...input, shape: feeds[input.name].dims })),
});

/** The graph with every value of its nodes as an output. */
export function exposed(graph, kinds) {
  const names = graph.nodes
    .flatMap(({ op, outputs }) => (op === 'Constant' ? [] : outputs))
    .filter((name) => kinds.has(name));
  return { ...graph, outputs: names.map((name) => kinds.get(name)) };
}
