// Operators that hold graphs, lists or steps: branches, loops, sequences, recurrent networks; and those on text.
import { exactly, inexact, like, NoRoom } from '../builder.mjs';
import { count, encode, everything, floats, isFloat } from '../numbers.mjs';
import { summands } from './reductions.mjs';

const n = BigInt;
const info = ({ name, type, dims }, shape = dims) => ({ name, type, shape });

/** A small graph of mild nodes over what stands around it and its own inputs; gives its nodes and the result's name. */
function body(g, x, prefix) {
  const nodes = [];
  let last = x.name;
  for (let i = g.integer(1, 3); i > 0; i--) {
    const name = `${prefix}${i}`;
    const op = g.pick(
      isFloat(x.type)
        ? ['Tanh', 'Sigmoid', 'Neg', 'Abs', 'Identity', 'Softsign']
        : ['Identity', ...(x.type.startsWith('int') ? ['Abs', 'Sign'] : [])],
    );
    nodes.push({ op, inputs: [last], outputs: [name] });
    last = name;
  }
  return { nodes, last };
}

const inexactAfter = (x, dims) => (isFloat(x.type) ? inexact(x, Math.max(1, x.bound), dims) : like(x, dims ?? x.dims));

function branch(g) {
  const condition = g.take({ types: ['bool'], dims: [], exact: true });
  const x = g.take({ rank: [0, 3], where: (v) => isFloat(v.type) || v.exact });
  const prefix = `${g.label('b')}_`;
  const graph = (side) => {
    const { nodes, last } = body(g, x, `${prefix}${side}`);
    return { name: side, nodes, outputs: [{ name: last, type: x.type }] };
  };
  return g.node('If', [condition], inexactAfter(x, x.dims), { then_branch: graph('t'), else_branch: graph('e') });
}

function loop(g) {
  const x = g.take({ rank: [0, 3], where: (v) => isFloat(v.type) || v.exact });
  const trips = g.integer(0, 4);
  const p = `${g.label('b')}_`;
  const inner = { name: `${p}x`, type: x.type, dims: x.dims };
  const { nodes, last } = body(g, inner, p);
  const graph = {
    name: 'body',
    nodes: [
      { op: 'Identity', inputs: [`${p}go`], outputs: [`${p}on`] },
      ...nodes,
      { op: 'Identity', inputs: [last], outputs: [`${p}scan`] },
    ],
    inputs: [
      { name: `${p}i`, type: 'int64', shape: [] },
      { name: `${p}go`, type: 'bool', shape: [] },
      { name: inner.name, type: x.type, shape: x.dims },
    ],
    outputs: [
      { name: `${p}on`, type: 'bool', shape: [] },
      { name: last, type: x.type, shape: x.dims },
      { name: `${p}scan`, type: x.type, shape: x.dims },
    ],
  };
  const outs = [inexactAfter(x, x.dims), inexactAfter(x, [trips, ...x.dims])];
  return g.node('Loop', [g.scalar('int64', trips), g.chance(0.5) ? g.scalar('bool', 1) : undefined, x], outs, {
    body: graph,
  });
}

function scan(g) {
  const x = g.take({ types: floats, rank: [1, 3] });
  const p = `${g.label('b')}_`;
  const row = x.dims.slice(1);
  const start = g.fresh({ type: x.type, dims: row, low: -1, high: 1, integral: false });
  const graph = {
    name: 'body',
    nodes: [
      { op: 'Add', inputs: [`${p}s`, `${p}x`], outputs: [`${p}sum`] },
      { op: 'Tanh', inputs: [`${p}sum`], outputs: [`${p}next`] },
      { op: 'Identity', inputs: [`${p}next`], outputs: [`${p}each`] },
    ],
    inputs: [`${p}s`, `${p}x`].map((name) => info({ name, type: x.type, dims: row })),
    outputs: [`${p}next`, `${p}each`].map((name) => info({ name, type: x.type, dims: row })),
  };
  const direction = g.chance(0.3) ? { scan_input_directions: [1n], scan_output_directions: [1n] } : {};
  return g.node('Scan', [start, x], [inexact(start, 1), inexact(x, 1)], {
    body: graph,
    num_scan_inputs: 1n,
    ...direction,
  });
}

const sequence = (x, length) => ({ ...like(x), kind: 'sequence', length });
const listed = everything.filter((type) => type !== 'bfloat16');

function construct(g, length = g.integer(1, 3)) {
  const x = g.take({ types: listed, rank: [1, 3] });
  const items = Array.from({ length }, (_, i) => (i === 0 ? x : g.take({ types: [x.type], dims: x.dims })));
  const all = {
    ...sequence(x, length),
    exact: items.every((item) => item.exact),
    integral: items.every((item) => item.integral),
    bound: Math.max(...items.map((item) => item.bound)),
  };
  return g.node('SequenceConstruct', items, all);
}
const takeSequence = (g) => {
  const there = g.values.filter((value) => value.kind === 'sequence' && value.length > 0);
  return there.length && g.chance(0.6) ? g.pick(there) : construct(g);
};

const sequences = {
  SequenceConstruct: (g) => construct(g),
  SequenceAt: (g) => {
    const s = takeSequence(g);
    return g.node('SequenceAt', [s, g.scalar('int64', g.integer(-s.length, s.length - 1))], like(s));
  },
  SequenceInsert: (g) => {
    const s = takeSequence(g);
    const x = g.take({ types: [s.type], dims: s.dims });
    const at = g.chance(0.5) ? [g.scalar('int64', g.integer(0, s.length))] : [];
    return g.node('SequenceInsert', [s, x, ...at], {
      ...sequence(s, s.length + 1),
      exact: s.exact && x.exact,
      integral: s.integral && x.integral,
      bound: Math.max(s.bound, x.bound),
    });
  },
  SequenceErase: (g) => {
    const s = takeSequence(g);
    return g.node(
      'SequenceErase',
      [s, ...(g.chance(0.5) ? [g.scalar('int64', g.integer(0, s.length - 1))] : [])],
      sequence(s, s.length - 1),
    );
  },
  SequenceLength: (g) => g.node('SequenceLength', [takeSequence(g)], exactly('int64', [], 9)),
  SequenceEmpty: (g) => {
    const x = g.take({ types: ['float32'], rank: [1, 3] });
    const empty = g.node('SequenceEmpty', [], { ...sequence(x, 0) });
    return g.node('SequenceInsert', [empty, x], sequence(x, 1));
  },
  ConcatFromSequence: (g) => {
    const s = takeSequence(g);
    const axis = g.integer(0, s.dims.length - 1);
    const stack = g.chance(0.4);
    const dims = stack
      ? [...s.dims.slice(0, axis), s.length, ...s.dims.slice(axis)]
      : s.dims.map((size, i) => (i === axis ? size * s.length : size));
    return g.node('ConcatFromSequence', [s], like(s, dims), { axis: n(axis), new_axis: n(Number(stack)) });
  },
  SplitToSequence: (g) => {
    const x = g.take({ types: listed, rank: [1, 3], where: (v) => v.dims[0] > 0 });
    if (!x.dims[0]) throw new NoRoom();
    return g.node('SplitToSequence', [x], sequence(like(x, [1, ...x.dims.slice(1)]), x.dims[0]), {
      axis: 0n,
      keepdims: 1n,
    });
  },
};

const gates = { RNN: 1, GRU: 3, LSTM: 4 };
const recurrent = (op) => (g) => {
  const [steps, batch, width, hidden] = [g.integer(1, 5), g.integer(1, 3), g.integer(1, 7), g.pick([1, 3, 4, 8, 17])];
  const direction = g.pick(['forward', 'reverse', 'bidirectional']);
  const ways = direction === 'bidirectional' ? 2 : 1;
  const type = g.type(floats);
  const x = g.bounded(g.take({ types: [type], dims: [steps, batch, width] }), 20);
  const w = summands(g, type, [ways, gates[op] * hidden, width]);
  const r = summands(g, type, [ways, gates[op] * hidden, hidden]);
  const inputs = [x, w, r];
  if (g.chance(0.6)) inputs.push(summands(g, type, [ways, 2 * gates[op] * hidden]));
  if (g.chance(0.4)) {
    inputs[3] ??= undefined;
    const lengths = Array.from({ length: batch }, () => g.integer(1, steps));
    inputs.push(
      g.constant({
        type: 'int32',
        dims: [batch],
        data: encode('int32', lengths),
        constant: g.chance(0.5),
        bound: steps,
      }),
    );
    if (g.chance(0.5)) inputs.push(summands(g, type, [ways, batch, hidden]));
  }
  const state = inexact({ type, dims: [ways, batch, hidden] }, op === 'LSTM' ? steps + 1 : 1);
  const outs = [inexact({ type, dims: [steps, ways, batch, hidden] }, 1), state, ...(op === 'LSTM' ? [state] : [])];
  const linear = op === 'GRU' ? { linear_before_reset: n(g.integer(0, 1)) } : {};
  return g.node(op, inputs, outs, { hidden_size: n(hidden), direction, ...linear });
};

const open = (type) => ({ type, dims: undefined, exact: true, integral: true, bound: 1 });
const text = {
  StringConcat: (g) => {
    const a = g.take({ types: ['string'] });
    return g.node('StringConcat', [a, g.take({ types: ['string'], dims: a.dims })], like(a));
  },
  StringSplit: (g) => {
    const x = g.take({ types: ['string'], where: (v) => count(v.dims) > 0 });
    if (count(x.dims) === 0) throw new NoRoom();
    return g.node(
      'StringSplit',
      [x],
      [open('string'), exactly('int64', x.dims, 9)],
      g.chance(0.5) ? { delimiter: g.pick([' ', ',', 'a']) } : {},
    );
  },
  RegexFullMatch: (g) => {
    const x = g.take({ types: ['string'] });
    return g.node('RegexFullMatch', [x], exactly('bool', x.dims), {
      pattern: g.pick(['a.*', '[a-z]*', '.*,?b', '\\d+']),
    });
  },
  StringNormalizer: (g) => {
    const x = g.take({ types: ['string'], rank: [1, 1] });
    return g.node('StringNormalizer', [x], open('string'), {
      case_change_action: g.pick(['LOWER', 'UPPER', 'NONE']),
      is_case_sensitive: 1n,
    });
  },
};

export const composite = {
  If: branch,
  Loop: loop,
  Scan: scan,
  ...sequences,
  ...Object.fromEntries(Object.keys(gates).map((op) => [op, recurrent(op)])),
  StringConcat: { since: 20, make: text.StringConcat },
  StringSplit: { since: 20, make: text.StringSplit },
  RegexFullMatch: { since: 20, make: text.RegexFullMatch },
  StringNormalizer: text.StringNormalizer,
};
