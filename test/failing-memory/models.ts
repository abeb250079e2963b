import { model, node, oneNode, type TensorInfo } from '../fixtures/onnx-writer.js';

/** A small model, what it is fed with ([type, dims, elements] by input) and what it is here for. */
interface Subject {
  bytes: Uint8Array;
  feeds: Record<string, [type: string, dims: number[], data: (number | string)[]]>;
}

const f32 = (name: string, shape?: TensorInfo['shape']): TensorInfo => ({ name, type: 'float32', shape });
const weights = (
  name: string,
  dims: number[],
): { name: string; type: 'float32'; dims: number[]; data: Float32Array } => ({
  name,
  type: 'float32',
  dims,
  data: Float32Array.from({ length: dims.reduce((a, b) => a * b, 1) }, (_, i) => ((i * 7) % 11) / 16 - 0.25),
});
const ramp = (count: number): number[] => Array.from({ length: count }, (_, i) => (i % 17) / 8 - 1);

const dense = model({
  nodes: [
    node('MatMul', ['x', 'w'], ['h']),
    node('Add', ['h', 'b'], ['s']),
    node('Relu', ['s'], ['r']),
    node('LayerNormalization', ['r', 'scale'], ['n'], { attributes: { axis: -1n } }),
    node('Softmax', ['n'], ['y']),
  ],
  inputs: [f32('x', ['n', 8])],
  outputs: [f32('y', ['n', 16])],
  initializers: [weights('w', [8, 16]), weights('b', [16]), weights('scale', [16])],
});

const picture = model({
  nodes: [
    node('Conv', ['x', 'w1'], ['c1'], { attributes: { pads: [1n, 1n, 1n, 1n], strides: [2n, 2n] } }),
    node('Clip', ['c1', 'zero', 'six'], ['a1']),
    node('Conv', ['a1', 'w2'], ['c2'], { attributes: { group: 8n, pads: [1n, 1n, 1n, 1n] } }),
    node('Relu', ['c2'], ['a2']),
    node('Conv', ['a2', 'w3'], ['c3']),
    node('GlobalAveragePool', ['c3'], ['p']),
    node('Flatten', ['p'], ['f']),
    node('Gemm', ['f', 'w4'], ['y']),
  ],
  inputs: [f32('x', ['n', 3, 'h', 'w'])],
  outputs: [f32('y', ['n', 10])],
  initializers: [
    weights('w1', [8, 3, 3, 3]),
    weights('w2', [8, 1, 3, 3]),
    weights('w3', [16, 8, 1, 1]),
    weights('w4', [16, 10]),
    { name: 'zero', type: 'float32', dims: [], data: Float32Array.of(0) },
    { name: 'six', type: 'float32', dims: [], data: Float32Array.of(6) },
  ],
});

const tagger = model({
  nodes: [
    node('Gather', ['table', 'x'], ['e']),
    node('LSTM', ['e', 'w', 'r'], ['h', '', ''], { attributes: { hidden_size: 4n, direction: 'bidirectional' } }),
    node('Transpose', ['h'], ['t'], { attributes: { perm: [0n, 2n, 1n, 3n] } }),
    node('Reshape', ['t', 'shape'], ['flat']),
    node('MatMul', ['flat', 'out'], ['scores']),
    node('ArgMax', ['scores'], ['y'], { attributes: { axis: -1n, keepdims: 0n } }),
  ],
  inputs: [{ name: 'x', type: 'int64', shape: ['t', 'n'] }],
  outputs: [{ name: 'y', type: 'int64', shape: ['t', 'n'] }],
  initializers: [
    weights('table', [12, 5]),
    weights('w', [2, 16, 5]),
    weights('r', [2, 16, 4]),
    weights('out', [8, 6]),
    { name: 'shape', type: 'int64', dims: [3], data: BigInt64Array.of(0n, 0n, -1n) },
  ],
});

const attention = model({
  nodes: [
    node('Transpose', ['x'], ['k'], { attributes: { perm: [0n, 2n, 1n] } }),
    node('MatMul', ['x', 'k'], ['s']),
    node('Mul', ['s', 'scale'], ['scaled']),
    node('Softmax', ['scaled'], ['p']),
    node('MatMul', ['p', 'x'], ['o']),
    node('Shape', ['o'], ['dims']),
    node('Gather', ['dims', 'last'], ['width']),
    node('Concat', ['minus', 'width'], ['flat'], { attributes: { axis: 0n } }),
    node('Reshape', ['o', 'flat'], ['y']),
  ],
  inputs: [f32('x', ['n', 't', 8])],
  outputs: [f32('y', ['m', 8])],
  initializers: [
    { name: 'scale', type: 'float32', dims: [], data: Float32Array.of(0.35) },
    { name: 'last', type: 'int64', dims: [1], data: BigInt64Array.of(2n) },
    { name: 'minus', type: 'int64', dims: [1], data: BigInt64Array.of(-1n) },
  ],
});

const loop = model({
  nodes: [
    node('Loop', ['n', '', 'x'], ['last', 'all'], {
      attributes: {
        body: {
          nodes: [node('Add', ['v', 'v'], ['w']), node('Identity', ['w'], ['seen']), node('Identity', ['go'], ['on'])],
          inputs: [{ name: 'i', type: 'int64', shape: [] }, { name: 'go', type: 'bool', shape: [] }, f32('v', ['k'])],
          outputs: [{ name: 'on', type: 'bool', shape: [] }, f32('w', ['k']), f32('seen', ['k'])],
        },
      },
    }),
  ],
  inputs: [{ name: 'n', type: 'int64', shape: [] }, f32('x', ['k'])],
  outputs: [f32('last', ['k']), f32('all', ['t', 'k'])],
});

const sequence = model({
  nodes: [
    node('SplitToSequence', ['x'], ['parts'], { attributes: { axis: 0n, keepdims: 0n } }),
    node('SequenceInsert', ['parts', 'extra'], ['more']),
    node('ConcatFromSequence', ['more'], ['y'], { attributes: { axis: 0n, new_axis: 1n } }),
  ],
  inputs: [f32('x', ['n', 3]), f32('extra', [3])],
  outputs: [f32('y', ['m', 3]), { name: 'more', type: 'float32', shape: [3], kind: 'sequence' }],
});

const text = model({
  nodes: [
    node('StringNormalizer', ['x'], ['lower'], { attributes: { case_change_action: 'LOWER', stopwords: ['the'] } }),
    node('Reshape', ['lower', 'column'], ['y']),
  ],
  inputs: [{ name: 'x', type: 'string', shape: ['n'] }],
  outputs: [{ name: 'y', type: 'string', shape: ['m', 1] }],
  initializers: [{ name: 'column', type: 'int64', dims: [2], data: BigInt64Array.of(-1n, 1n) }],
});

const codes = model({
  nodes: [
    node('DynamicQuantizeLinear', ['x'], ['q', 's', 'z']),
    node('MatMulInteger', ['q', 'w', 'z'], ['i']),
    node('Cast', ['i'], ['f'], { attributes: { to: 1n } }),
    node('Mul', ['f', 's'], ['y']),
  ],
  inputs: [f32('x', ['n', 8])],
  outputs: [f32('y', ['n', 4])],
  initializers: [
    { name: 'w', type: 'int8', dims: [8, 4], data: Int8Array.from({ length: 32 }, (_, i) => (i * 5) % 23) },
  ],
});

const found = model({
  nodes: [
    node('NonZero', ['x'], ['at']),
    node('Transpose', ['at'], ['rows']),
    node('GatherND', ['x', 'rows'], ['values']),
    node('TopK', ['values', 'two'], ['y', 'where']),
  ],
  inputs: [f32('x', ['n', 'm'])],
  outputs: [f32('y', [2]), { name: 'where', type: 'int64', shape: [2] }],
  initializers: [{ name: 'two', type: 'int64', dims: [1], data: BigInt64Array.of(2n) }],
});

/** Kinds of models: what loads, runs and results take memory for differs among them. */
export const subjects: Record<string, Subject> = {
  identity: {
    bytes: oneNode('Identity', [f32('x', ['n'])], [f32('y', ['n'])]),
    feeds: { x: ['float32', [3], [1, 2, 3]] },
  },
  // Results of more than a megabyte are made beforehand, or moved by a stage of their own.
  large: {
    bytes: oneNode('Add', [f32('x', ['n']), f32('z', ['n'])], [f32('y', ['n'])]),
    feeds: { x: ['float32', [280_000], ramp(280_000)], z: ['float32', [280_000], ramp(280_000)] },
  },
  dense: { bytes: dense, feeds: { x: ['float32', [3, 8], ramp(24)] } },
  picture: { bytes: picture, feeds: { x: ['float32', [1, 3, 20, 20], ramp(1200)] } },
  tagger: { bytes: tagger, feeds: { x: ['int64', [6, 1], [1, 5, 3, 11, 0, 2]] } },
  attention: { bytes: attention, feeds: { x: ['float32', [1, 5, 8], ramp(40)] } },
  loop: { bytes: loop, feeds: { n: ['int64', [], [4]], x: ['float32', [2], [1, 2]] } },
  sequence: { bytes: sequence, feeds: { x: ['float32', [2, 3], ramp(6)], extra: ['float32', [3], [7, 8, 9]] } },
  text: { bytes: text, feeds: { x: ['string', [3], ['The', 'Memory of an elephant, which is long', 'the']] } },
  codes: { bytes: codes, feeds: { x: ['float32', [2, 8], ramp(16)] } },
  found: { bytes: found, feeds: { x: ['float32', [2, 3], [0, 3, 0, 1, 2, 0]] } },
};
