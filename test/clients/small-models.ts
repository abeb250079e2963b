// Models with the inputs and outputs of those that transformers.js runs, small and with weights drawn at random: what they
// answer means nothing, and is the same on every machine and engine.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { toHalf } from '../../bench/architectures/materialize.mjs';
import { gaussian, randomNumbers } from '../../bench/architectures/workloads.mjs';
import { model, node, type NodeSpec, type TensorData, type TensorInfo } from '../fixtures/onnx-writer.js';

const [vocabulary, width, longest] = [30522, 32, 64]; // of BERT, but for the last two

/** How a model's weights are held: as float32, as float16, or as float32 in a file beside it. */
export type Storage = 'fp32' | 'fp16' | 'external';

/** Weights by name; the same name has the same numbers in every storage. */
class Weights {
  readonly list: TensorData[] = [];
  readonly #random = randomNumbers(11);
  readonly #beside: Uint8Array[] = [];
  #offset = 0;

  constructor(
    readonly storage: Storage,
    readonly file: string,
  ) {}

  get type() {
    return this.storage === 'fp16' ? 'float16' : 'float32';
  }

  draw(name: string, dims: number[], scale = 1 / Math.sqrt(dims[0]!)): string {
    return this.floats(name, dims, gaussian(dims, this.#random, scale).data);
  }

  floats(name: string, dims: number[], values: Float32Array): string {
    if (this.storage !== 'external') {
      this.list.push({ name, type: this.type, dims, data: this.storage === 'fp16' ? toHalf(values) : values });
      return name;
    }
    const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    const external = { location: this.file, offset: this.#offset, length: bytes.length };
    this.list.push({ name, type: 'float32', dims, data: values, external });
    this.#beside.push(bytes);
    this.#offset += bytes.length;
    return name;
  }

  ints(name: string, values: number[]): string {
    this.list.push({ name, type: 'int64', dims: [values.length], data: BigInt64Array.from(values, BigInt) });
    return name;
  }

  /** What stands in the file beside the model. */
  get beside(): Uint8Array {
    return Buffer.concat(this.#beside);
  }
}

/** A head's nodes from the hidden states to its outputs. */
interface Head {
  readonly nodes: (weights: Weights) => NodeSpec[];
  readonly outputs: Record<string, TensorInfo['shape']>;
}

const onEach = (labels: number) => (weights: Weights) => [
  node('MatMul', ['hidden', weights.draw('classes', [width, labels], 1)], ['logits']),
];

/** By task, as the exporters name their outputs. */
export const heads = {
  'feature-extraction': {
    nodes: () => [node('Identity', ['hidden'], ['last_hidden_state'])],
    outputs: { last_hidden_state: ['batch_size', 'sequence_length', width] },
  },
  'text-classification': {
    nodes: (weights) => [
      node('Gather', ['hidden', weights.ints('first', [0])], ['firsts'], { attributes: { axis: 1n } }),
      node('Squeeze', ['firsts', weights.ints('along the text', [1])], ['sentence']),
      node('MatMul', ['sentence', weights.draw('classes', [width, 2], 1)], ['logits']),
    ],
    outputs: { logits: ['batch_size', 2] },
  },
  'token-classification': {
    nodes: onEach(5),
    outputs: { logits: ['batch_size', 'sequence_length', 5] },
  },
  'fill-mask': {
    nodes: () => [
      node('Transpose', ['words'], ['answers']),
      node('MatMul', ['hidden', 'answers'], ['logits']),
    ],
    outputs: { logits: ['batch_size', 'sequence_length', vocabulary] },
  },
  'question-answering': {
    nodes: (weights) => [
      ...onEach(2)(weights),
      node('Split', ['logits'], ['starts', 'ends'], { attributes: { axis: -1n } }),
      node('Squeeze', ['starts', weights.ints('last', [-1])], ['start_logits']),
      node('Squeeze', ['ends', 'last'], ['end_logits']),
    ],
    outputs: {
      start_logits: ['batch_size', 'sequence_length'],
      end_logits: ['batch_size', 'sequence_length'],
    },
  },
} satisfies Record<string, Head>;

/** One layer of a BERT. */
function layer(weights: Weights): NodeSpec[] {
  const square = (name: string) => weights.draw(name, [width, width]);
  const norm = (input: string, output: string) =>
    node('LayerNormalization', [input, weights.floats(`scale of ${output}`, [width], new Float32Array(width).fill(1)), weights.floats(`bias of ${output}`, [width], new Float32Array(width))], [output]); // prettier-ignore
  const number = (name: string, value: number) => weights.floats(name, [1], Float32Array.of(value));
  const cast = { attributes: { to: weights.storage === 'fp16' ? 10n : 1n } };
  return [
    node('Gather', [weights.draw('words', [vocabulary, width], 1), 'input_ids'], ['word']),
    node('Gather', [weights.draw('kinds', [2, width], 1), 'token_type_ids'], ['kind']),
    node('Shape', ['input_ids'], ['length'], { attributes: { start: 1n, end: 2n } }),
    node('Slice', [weights.draw('positions', [longest, width], 1), weights.ints('start', [0]), 'length'], ['position']),
    node('Add', ['word', 'kind'], ['words and kinds']),
    node('Add', ['words and kinds', 'position'], ['embedded']),
    norm('embedded', 'x'),
    ...['query', 'key', 'value'].map((name) => node('MatMul', ['x', square(`to ${name}`)], [name])),
    node('Transpose', ['key'], ['keys'], { attributes: { perm: [0n, 2n, 1n] } }),
    node('MatMul', ['query', 'keys'], ['products']),
    node('Mul', ['products', number('scale', 1 / Math.sqrt(width))], ['scaled']),
    node('Unsqueeze', ['attention_mask', weights.ints('row', [1])], ['row mask']),
    node('Cast', ['row mask'], ['seen'], cast),
    node('Sub', [number('one', 1), 'seen'], ['unseen']),
    node('Mul', ['unseen', number('far', -10000)], ['mask']),
    node('Add', ['scaled', 'mask'], ['masked']),
    node('Softmax', ['masked'], ['attention'], { attributes: { axis: -1n } }),
    node('MatMul', ['attention', 'value'], ['attended']),
    node('MatMul', ['attended', square('out')], ['projected']),
    node('Add', ['projected', 'x'], ['with attention']),
    norm('with attention', 'y'),
    node('MatMul', ['y', weights.draw('wide', [width, 2 * width])], ['before']),
    node('Div', ['before', number('root', Math.SQRT2)], ['by root']),
    node('Erf', ['by root'], ['erf']),
    node('Add', ['erf', 'one'], ['erf and one']),
    node('Mul', ['before', 'erf and one'], ['doubled']),
    node('Mul', ['doubled', number('half', 0.5)], ['after']),
    node('MatMul', ['after', weights.draw('narrow', [2 * width, width])], ['back']),
    node('Add', ['back', 'y'], ['with both']),
    norm('with both', 'hidden'),
  ];
}

/** Writes a BERT of one layer for a task into `folder`, as the exporters lay models out. */
export function writeBert(folder: string, task: keyof typeof heads, storage: Storage = 'fp32'): void {
  const name = storage === 'fp16' ? 'model_fp16.onnx' : 'model.onnx';
  const weights = new Weights(storage, `${name}_data`);
  const head: Head = heads[task];
  const names = Object.keys(head.outputs);
  const nodes = [...layer(weights), ...head.nodes(weights)];
  if (storage === 'fp16') {
    // Exporters leave what goes in and comes out as it was.
    const inner = (output: string) => (names.includes(output) ? `${output} in halves` : output);
    for (const each of nodes) each.outputs = each.outputs.map(inner);
    nodes.push(...names.map((output) => node('Cast', [inner(output)], [output], { attributes: { to: 1n } })));
  }
  const ids = (input: string): TensorInfo => ({ name: input, type: 'int64', shape: ['batch_size', 'sequence_length'] });
  const bytes = model({
    nodes,
    inputs: ['input_ids', 'attention_mask', 'token_type_ids'].map(ids),
    outputs: names.map((output) => ({ name: output, type: 'float32', shape: head.outputs[output] })),
    initializers: weights.list,
  });
  writeFileSync(onnxFile(folder, name), bytes);
  if (storage === 'external') writeFileSync(onnxFile(folder, `${name}_data`), weights.beside);
}

/** Writes a network that classifies pictures of 224 x 224 by their patches of 16 x 16. */
export function writePictureClassifier(folder: string, classes: number): void {
  const weights = new Weights('fp32', '');
  const bytes = model({
    nodes: [
      node('Conv', ['pixel_values', weights.draw('patches', [width, 3, 16, 16], 0.1)], ['patch'], { attributes: { strides: [16n, 16n] } }), // prettier-ignore
      node('Relu', ['patch'], ['active']),
      node('GlobalAveragePool', ['active'], ['mean']),
      node('Flatten', ['mean'], ['flat']),
      node('Gemm', ['flat', weights.draw('classes', [width, classes])], ['logits']),
    ],
    inputs: [{ name: 'pixel_values', type: 'float32', shape: ['batch_size', 'num_channels', 'height', 'width'] }],
    outputs: [{ name: 'logits', type: 'float32', shape: ['batch_size', classes] }],
    initializers: weights.list,
  });
  writeFileSync(onnxFile(folder, 'model.onnx'), bytes);
}

function onnxFile(folder: string, name: string): string {
  mkdirSync(join(folder, 'onnx'), { recursive: true });
  return join(folder, 'onnx', name);
}
