// ONNX's messages that a conformance case holds, as plain values (see scripts/lib/values.mjs).
// Field numbers are those of onnx.proto.
import { arrayOf } from '../../../scripts/lib/values.mjs';
import { eachField, pushVarints, text } from './protobuf.mjs';

/** Element type names by TensorProto.DataType. */
export const typeNames = [
  'undefined', 'float32', 'uint8', 'int8', 'uint16', 'int16', 'int32', 'int64', 'string', 'bool', 'float16', 'float64',
  'uint32', 'uint64', 'complex64', 'complex128', 'bfloat16', 'float8e4m3fn', 'float8e4m3fnuz', 'float8e5m2',
  'float8e5m2fnuz', 'uint4', 'int4', 'float4e2m1', 'float8e8m0', 'uint2', 'int2',
  'float6e2m3', 'float6e3m2',
]; // prettier-ignore

/** Types whose elements share a byte, with how many bits each takes. */
export const packedBits = { uint4: 4, int4: 4, float4e2m1: 4, uint2: 2, int2: 2, float6e2m3: 6, float6e3m2: 6 };

const complexParts = { complex64: Float32Array, complex128: Float64Array };
const storage = (type) => complexParts[type] ?? arrayOf[type] ?? Uint8Array;

/** Bytes of unknown alignment as an array of the given kind. */
function view(bytes, Kind) {
  const copy = new Uint8Array(bytes);
  return new Kind(copy.buffer, 0, copy.byteLength / Kind.BYTES_PER_ELEMENT);
}

/** TensorProto -> { type, dims, data } */
export function readTensor(bytes) {
  const dims = [];
  const integers = []; // int32_data, int64_data or uint64_data
  const strings = [];
  const chunks = []; // packed or single float_data and double_data
  let type = 'undefined';
  let raw;
  eachField(bytes, (field, value) => {
    if (field === 1) pushVarints(dims, value);
    else if (field === 2) type = typeNames[Number(value)] ?? `type ${value}`;
    else if (field === 4 || field === 10) chunks.push(value);
    else if (field === 5 || field === 7 || field === 11) pushVarints(integers, value);
    else if (field === 6) strings.push(text(value));
    else if (field === 9) raw = value;
    else if (field === 13) throw new Error('a test value in external data');
  });
  const Kind = storage(type);
  let data;
  if (type === 'string') data = strings;
  else if (raw) data = view(raw, Kind);
  else if (chunks.length) data = view(Buffer.concat(chunks), Kind);
  else if (type === 'int64') data = BigInt64Array.from(integers);
  else if (type === 'uint64') data = BigUint64Array.from(integers, (value) => BigInt.asUintN(64, value));
  else data = Kind.from(integers, Number);
  return { type, dims: dims.map(Number), data };
}

// SequenceProto, OptionalProto and MapProto number their kinds of value alike.
const readers = { 1: readTensor, 3: readSequence, 4: readMap, 5: readOptional };

/** SequenceProto -> array */
export function readSequence(bytes) {
  const items = [];
  eachField(bytes, (field, value) => {
    const read = readers[field - 2];
    if (field > 2 && !read) throw new Error('a sequence of sparse tensors');
    if (read) items.push(read(value));
  });
  return items;
}

/** OptionalProto -> its value, or null */
export function readOptional(bytes) {
  let result = null;
  eachField(bytes, (field, value) => {
    const read = readers[field - 2];
    if (field > 2 && !read) throw new Error('an optional sparse tensor');
    if (read) result = read(value);
  });
  return result;
}

/** MapProto -> Map from bigint or string to number or string */
export function readMap(bytes) {
  const keys = [];
  let values = [];
  eachField(bytes, (field, value) => {
    if (field === 3) pushVarints(keys, value);
    else if (field === 4) keys.push(text(value));
    else if (field === 5) values = readSequence(value).flatMap((tensor) => [...tensor.data]);
  });
  return new Map(keys.map((key, i) => [key, values[i]]));
}

/** What a case needs to know of a ModelProto: { inputs, outputs, operators }; a value is { name, kind }. */
export function readModel(bytes) {
  const inputs = [];
  const outputs = [];
  const operators = [];
  eachField(bytes, (field, value) => {
    if (field !== 7) return;
    eachField(value, (graphField, item) => {
      if (graphField === 1) operators.push(nodeOperator(item));
      else if (graphField === 11) inputs.push(valueInfo(item));
      else if (graphField === 12) outputs.push(valueInfo(item));
    });
  });
  return { inputs, outputs, operators };
}

function nodeOperator(bytes) {
  let name = '';
  let domain = '';
  eachField(bytes, (field, value) => {
    if (field === 4) name = text(value);
    else if (field === 7) domain = text(value);
  });
  return domain && domain !== 'ai.onnx' ? `${domain}.${name}` : name;
}

function valueInfo(bytes) {
  const info = { name: '', kind: 'tensor' };
  eachField(bytes, (field, value) => {
    if (field === 1) info.name = text(value);
    else if (field === 2) {
      eachField(value, (type) => {
        info.kind = { 4: 'sequence', 5: 'map', 8: 'sparse', 9: 'optional' }[type] ?? info.kind;
      });
    }
  });
  return info;
}

const byKind = { tensor: readTensor, sequence: readSequence, map: readMap, optional: readOptional };

/** A data file's value, of the kind that the graph declares. */
export function readValue(bytes, kind) {
  if (!byKind[kind]) throw new Error(`a ${kind} value`);
  return byKind[kind](bytes);
}
