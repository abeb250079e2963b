// A case's model with nothing said of its results, so that inference alone can tell them.
// test/generators/onnx-inference.py does the same for the onnx package: the two must stay alike.
import { eachField, pushVarints, text } from './protobuf.mjs';

const int32 = 6;
const int64 = 7;
const longestConstant = 64;

function varint(value) {
  const bytes = [];
  for (let rest = BigInt.asUintN(64, BigInt(value)); ; rest >>= 7n) {
    if (rest < 128n) return [...bytes, Number(rest)];
    bytes.push(Number(rest & 127n) | 128);
  }
}

/** Fields as protobuf: integers, text, or bytes. */
function encode(fields) {
  const parts = fields.flatMap(([number, value]) => {
    if (typeof value === 'bigint') return [Uint8Array.from([...varint(number << 3), ...varint(value)])];
    const bytes = typeof value === 'string' ? new TextEncoder().encode(value) : value;
    return [Uint8Array.from([...varint((number << 3) | 2), ...varint(bytes.length)]), bytes];
  });
  return new Uint8Array(Buffer.concat(parts));
}

/** The message with each field replaced by what `change(number, value)` gives: fields, or undefined to keep it. */
function rewrite(bytes, change) {
  const fields = [];
  eachField(bytes, (number, value) => fields.push(...(change(number, value) ?? [[number, value]])));
  return encode(fields);
}

const nameOf = (valueInfo) => {
  let name = '';
  eachField(valueInfo, (number, value) => {
    if (number === 1) name = text(value);
  });
  return name;
};

/** Every dim over 1 of a tensor's type becomes the symbol n<dim>: dims of one size are then known to be equal. */
const withSymbols = (valueInfo) =>
  rewrite(valueInfo, (field, type) => {
    if (field !== 2) return undefined;
    const dims = (shape) =>
      rewrite(shape, (_, dim) => [
        [1, rewrite(dim, (kind, size) => (kind === 1 && size > 1n ? [[2, `n${size}`]] : undefined))],
      ]);
    const tensor = (bytes) => rewrite(bytes, (part, value) => (part === 2 ? [[2, dims(value)]] : undefined));
    return [[2, rewrite(type, (kind, value) => (kind === 1 ? [[1, tensor(value)]] : undefined))]];
  });

function isShapeLike(tensor) {
  const dims = [];
  let type = 0;
  eachField(tensor, (number, value) => {
    if (number === 1) pushVarints(dims, value);
    else if (number === 2) type = Number(value);
  });
  return (type === int32 || type === int64) && (dims.length === 0 || (dims.length === 1 && dims[0] <= longestConstant));
}

/**
 * @param {Uint8Array} model a ModelProto
 * @param {Map<string, Uint8Array>} tensors TensorProtos fed to inputs: short int32 and int64 ones become initializers
 * @param {{ symbolic: boolean }} options whether inputs have symbols for dims
 * @returns {Uint8Array} the model without types of outputs and of values between
 */
export function bareModel(model, tensors, { symbolic }) {
  const constants = new Map([...tensors].filter(([, tensor]) => isShapeLike(tensor)));
  return rewrite(model, (field, graph) => {
    if (field !== 7) return undefined;
    const held = new Set();
    eachField(graph, (number, value) => {
      if (number === 5) {
        eachField(value, (part, name) => {
          if (part === 8) held.add(text(name));
        });
      }
    });
    const initializers = [];
    const rest = rewrite(graph, (number, value) => {
      if (number === 13) return [];
      if (number === 12) return [[12, encode([[1, nameOf(value)]])]];
      if (number !== 11) return undefined;
      const name = nameOf(value);
      if (held.has(name)) return undefined;
      if (!constants.has(name)) return symbolic ? [[11, withSymbols(value)]] : undefined;
      const unnamed = rewrite(constants.get(name), (part) => (part === 8 ? [] : undefined));
      initializers.push([5, new Uint8Array(Buffer.concat([unnamed, encode([[8, name]])]))]);
      return [];
    });
    return [[7, new Uint8Array(Buffer.concat([rest, encode(initializers)]))]];
  });
}
