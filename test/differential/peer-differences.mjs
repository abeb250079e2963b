// Where onnxruntime-node differs from the standard, or from what docs/differences.md says this engine does.
import { peerSaturates } from '../../scripts/lib/peer.mjs';
import { readsOf } from './generate.mjs';
import { decode, isFloat, isInteger } from './numbers.mjs';

const plainOf = (name, { initializers, nodes }, known) =>
  known[name] ??
  initializers.find((each) => each.name === name) ??
  nodes.find(({ outputs }) => outputs[0] === name)?.attributes?.value;
/** Whether a node reads NaN or an infinity. */
const reads = (test) => (node, graph, known) =>
  node.inputs.some((name) => {
    const value = plainOf(name, graph, known);
    return value && isFloat(value.type) && decode(value).some((number) => test(number));
  });
const beyond = reads((number) => !Number.isFinite(number));
const first =
  (test) =>
  ({ inputs }, graph, known) => {
    const value = plainOf(inputs[0], graph, known);
    return value && !Array.isArray(value) && test(value);
  };
const whole = first(({ type }) => isInteger(type));
const double = first(({ type }) => type === 'float64');
const many = first(({ dims, data }) => dims.length > 0 && data.length > 4096);
const nothing = first(({ dims }) => dims.includes(0));

/** Whether a node reads bytes with a sign, whose products are added in 16 bits. */
const pairsOfBytes = ({ inputs }, graph, known) =>
  peerSaturates && inputs.some((name) => plainOf(name, graph, known)?.type === 'int8');

const texts = ({ inputs }, graph, known) => inputs.some((name) => plainOf(name, graph, known)?.type === 'string');

/** @type {{ op: string | RegExp, when?: (node: object, graph: object, known: object) => boolean, reason: string }[]} */
export const peerDifferences = [
  { op: 'Mish', when: beyond, reason: 'NaN of -infinity, whose limit is 0' },
  { op: 'StringSplit', reason: 'without a delimiter it splits at spaces only; with one an empty string has no piece' },
  { op: /Quantize/, when: beyond, reason: 'NaN becomes the code 0, not the zero point' },
  { op: 'Softsign', when: beyond, reason: 'NaN of an infinity, whose limit is 1 or -1' },
  {
    op: 'LogSoftmax',
    when: beyond,
    reason: 'of float64 NaN and infinities stay where they are instead of making all NaN',
  },
  {
    op: /^Reduce(Sum|Prod|L1|SumSquare)$/,
    when: whole,
    reason: 'integers that overflow saturate, where numpy wraps around',
  },
  {
    op: /^Reduce(Sum|L1|L2|SumSquare)$/,
    when: many,
    reason: 'float32 is summed one after another: 1e-4 off at 12,700',
  },
  { op: /^(Reduce|Arg)/, when: nothing, reason: 'over dims of 0 the result may have the dims of the input' },
  { op: 'Gather', when: texts, reason: 'of text only the first element of each block is copied' },
  { op: /^Scatter/, when: beyond, reason: 'the least or greatest of NaN and a number may be the number' },
  { op: 'Gelu', when: double, reason: 'constants of the tanh form are rounded to float32' },
  { op: /^(Attention|DFT|STFT)$/, when: double, reason: 'scales and angles are rounded to float32' },
  { op: 'Gemm', when: nothing, reason: 'beta is left out where the product sums nothing' },
  { op: /^(MatMul|QLinearMatMul|MatMulInteger)$/, when: nothing, reason: 'sums of nothing are left unwritten' },
  {
    op: /^(QLinearConv|QLinearMatMul|ConvInteger|MatMulInteger|DequantizeLinear|QGemm|QAttention|MatMulIntegerToFloat|DynamicQuantizeMatMul|DynamicQuantizeLSTM)$/,
    when: pairsOfBytes,
    reason: 'without VNNI pairs of products of bytes are added in 16 bits, which saturate',
  },
  { op: 'Shrink', when: double, reason: 'float64 is computed as float32' },
];

const bodiesOf = ({ attributes = {} }) => Object.values(attributes).flatMap((value) => value?.nodes ?? []);

/** Whether a known difference may explain that of an output: a node that it depends on is in the list. */
export function knownOfPeer(graph, output, known) {
  const needed = new Set([output]);
  for (const node of [...graph.nodes].reverse()) {
    if (!node.outputs.some((name) => needed.has(name))) continue;
    readsOf(node).forEach((name) => needed.add(name));
    for (const inner of [node, ...bodiesOf(node)]) {
      const read = { ...inner, inputs: readsOf(node) };
      const listed = ({ op, when }) => (op.test?.(inner.op) ?? op === inner.op) && (!when || when(read, graph, known));
      if (peerDifferences.some(listed)) return true;
    }
  }
  return false;
}
