// A model being written: nodes and weights are added to it, and it says what each value's dims are.
import { bytes, ints, integer, attribute, message, operatorSet, value } from '../architectures/onnx-messages.mjs';
import { gaussian } from '../architectures/workloads.mjs';

const dataTypes = { float32: 1, int64: 7 };
const count = (dims) => dims.reduce((a, b) => a * b, 1);

const attributeMessage = (name, content) => {
  if (typeof content === 'string') return message(5, bytes(1, name), integer(20, 3), bytes(4, content));
  if (Array.isArray(content)) return ints(name, content);
  if (Number.isInteger(content)) return attribute(name, 'int', integer(3, content));
  return message(5, bytes(1, name), integer(20, 1), Buffer.from([0x15]), Buffer.from(Float32Array.of(content).buffer));
};

/** A value of the graph: `{ name, dims }`. */
export class Graph {
  #nodes = [];
  #initializers = [];
  #inputs = [];
  #names = 0;

  /** @param {() => number} next numbers from 0 up to 1 */
  constructor(next) {
    this.next = next;
  }

  pick = (list) => list[Math.floor(this.next() * list.length)];

  input(name, dims) {
    this.#inputs.push(value(11, name, dims));
    return { name, dims };
  }

  #constant(type, dims, data) {
    const name = `w${this.#names++}`;
    const raw = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    this.#initializers.push(
      message(5, ...dims.map((dim) => integer(1, dim)), integer(2, dataTypes[type]), bytes(8, name), bytes(9, raw)),
    );
    return { name, dims };
  }

  /** Weights with the standard deviation that keeps what `fanIn` products sum to as large as what goes in. */
  weights(dims, fanIn = count(dims.slice(1))) {
    return this.#constant('float32', dims, gaussian(dims, this.next, Math.sqrt(1 / fanIn)).data);
  }
  /** Small numbers, around `middle`. */
  small(dims, middle = 0) {
    return this.#constant(
      'float32',
      dims,
      gaussian(dims, this.next, 0.05).data.map((x) => x + middle),
    );
  }
  scalar(number) {
    return this.#constant('float32', [], Float32Array.of(number));
  }
  integers(list) {
    return this.#constant('int64', [list.length], BigInt64Array.from(list, BigInt));
  }

  /** A node of one output, whose dims are given; an input that is left out is undefined. */
  op(type, inputs, dims, attributes = {}) {
    const name = `v${this.#names++}`;
    this.#nodes.push(
      message(
        1,
        ...inputs.map((input) => bytes(1, input?.name ?? '')),
        bytes(2, name),
        bytes(3, `${type} ${name}`),
        bytes(4, type),
        ...Object.entries(attributes).map(([key, content]) => attributeMessage(key, content)),
      ),
    );
    return { name, dims };
  }

  /** The file, with `result` as its output y. */
  file(result) {
    this.op('Identity', [result], result.dims);
    const graph = [...this.#nodes, bytes(2, 'network'), ...this.#initializers, ...this.#inputs];
    return Buffer.concat([
      integer(1, 8),
      message(7, ...graph, value(12, `v${this.#names - 1}`, result.dims)),
      operatorSet('', 17),
    ]);
  }
}
