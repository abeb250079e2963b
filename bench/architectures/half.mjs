// A float32 model with its weights in a file beside it, as a float16 one: weights, inputs, outputs and everything between
// them, but for what an operator wants in float32.
import { closeSync, openSync, readFileSync, readSync, writeFileSync, writeSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { eachField, text } from '../../test/conformance/lib/protobuf.mjs';
import { toHalf } from './materialize.mjs';
import { bytes, integer } from './onnx-messages.mjs';

const float32 = 1n;
const float16 = 10;
const most = 65504;

/** Inputs that stay float32, by operator. */
const kept = { Resize: [1, 2], Upsample: [1] };

const floatsOf = (data) => new Float32Array(data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength));
/** What float16 cannot hold becomes its largest number: masks add -3e38. */
const halves = (floats) =>
  Buffer.from(toHalf(floats.map((v) => (Math.abs(v) > most && Number.isFinite(v) ? Math.sign(v) * most : v))).buffer);

function varintBytes(value) {
  const data = [];
  for (let rest = value; ; rest >>= 7n) {
    data.push(Number(rest & 127n) + (rest > 127n ? 128 : 0));
    if (rest <= 127n) return Buffer.from(data);
  }
}
/** A varint field of any value. */
const varint = (field, value) => Buffer.concat([varintBytes(BigInt(field * 8)), varintBytes(value)]);

/** The message with fields replaced: `edits[field](value)` gives the bytes of the whole new field, undefined keeps it. */
function rewrite(message, edits) {
  const parts = [];
  eachField(message, (field, value) => {
    const edited = edits[field]?.(value);
    if (edited) parts.push(edited);
    else if (typeof value === 'bigint') parts.push(varint(field, value));
    else parts.push(wireBytes(field, value, message));
  });
  return Buffer.concat(parts);
}

/** A field of bytes as it stood: single floats (wire type 5) have no length. */
function wireBytes(field, value, message) {
  const tag = message[value.byteOffset - message.byteOffset - 1];
  return (tag & 7) === 5 && value.length === 4 && tag >>> 3 === field
    ? Buffer.concat([Buffer.from([tag]), value])
    : bytes(field, value);
}

const isFloat = (tensor) => {
  let found = false;
  eachField(tensor, (field, value) => (found ||= field === 2 && value === float32));
  return found;
};

function entryOf(message) {
  const entry = {};
  eachField(message, (field, value) => (entry[field === 1 ? 'key' : 'value'] = text(value)));
  return entry;
}

/** A TensorProto in float16; `weights` moves what lies in the file beside the model. */
function halfTensor(tensor, weights) {
  if (!isFloat(tensor)) return tensor;
  const place = {};
  eachField(tensor, (field, value) => {
    if (field !== 13) return;
    const { key, value: said } = entryOf(value);
    place[key] = said;
  });
  const moved = place.location === undefined ? undefined : weights(Number(place.offset ?? 0), Number(place.length));
  const entry = (key, value) => bytes(13, Buffer.concat([bytes(1, key), bytes(2, String(value))]));
  let placed = false;
  return rewrite(tensor, {
    2: () => integer(2, float16),
    4: (value) => bytes(9, halves(floatsOf(value))),
    9: (value) => bytes(9, halves(floatsOf(value))),
    13: () => {
      if (placed) return Buffer.alloc(0);
      placed = true;
      return Buffer.concat([
        entry('location', moved.location),
        entry('offset', moved.offset),
        entry('length', moved.length),
      ]);
    },
  });
}

const halfType = (type) =>
  rewrite(type, {
    1: (tensor) => bytes(1, rewrite(tensor, { 1: (type) => (type === float32 ? integer(1, float16) : undefined) })),
  });
const halfValue = (value) => rewrite(value, { 2: (type) => bytes(2, halfType(type)) });

function halfNode(node, weights, isKept) {
  let opType = '';
  const outputs = [];
  eachField(node, (field, value) => {
    if (field === 4) opType = text(value);
    if (field === 2) outputs.push(text(value));
  });
  if (opType === 'Constant' && isKept(outputs[0])) return node;
  return rewrite(node, {
    5: (attribute) => {
      let name = '';
      eachField(attribute, (field, value) => (name = field === 1 ? text(value) : name));
      return bytes(
        5,
        rewrite(attribute, {
          3: (value) => (opType === 'Cast' && name === 'to' && value === float32 ? integer(3, float16) : undefined),
          5: (tensor) => bytes(5, halfTensor(tensor, weights)),
          6: (graph) => bytes(6, halfGraph(graph, weights)),
        }),
      );
    },
  });
}

function halfGraph(graph, weights) {
  const keptNames = new Set();
  eachField(graph, (field, node) => {
    if (field !== 1) return;
    const inputs = [];
    let opType = '';
    eachField(node, (part, value) => {
      if (part === 1) inputs.push(text(value));
      if (part === 4) opType = text(value);
    });
    for (const i of kept[opType] ?? []) if (inputs[i]) keptNames.add(inputs[i]);
  });
  const nameOf = (tensor) => {
    let name = '';
    eachField(tensor, (field, value) => (name = field === 8 ? text(value) : name));
    return name;
  };
  return rewrite(graph, {
    1: (node) =>
      bytes(
        1,
        halfNode(node, weights, (name) => keptNames.has(name)),
      ),
    5: (tensor) => (keptNames.has(nameOf(tensor)) ? undefined : bytes(5, halfTensor(tensor, weights))),
    11: (value) => bytes(11, halfValue(value)),
    12: (value) => bytes(12, halfValue(value)),
    13: (value) => bytes(13, halfValue(value)),
  });
}

/** Writes `model`, whose weights lie in NAME.bin beside it, as `out` with NAME.bin of its own. */
export function writeHalf(model, out) {
  const location = basename(out).replace(/\.onnx$/, '.bin');
  const from = openSync(join(dirname(model), basename(model).replace(/\.onnx$/, '.bin')), 'r');
  const to = openSync(join(dirname(out), location), 'w');
  let end = 0;
  const weights = (offset, length) => {
    const floats = new Float32Array(length / 4);
    readSync(from, new Uint8Array(floats.buffer), 0, length, offset);
    const data = halves(floats);
    const at = Math.ceil(end / 4096) * 4096;
    writeSync(to, data, 0, data.length, at);
    end = at + data.length;
    return { location, offset: at, length: data.length };
  };
  try {
    writeFileSync(out, rewrite(readFileSync(model), { 7: (graph) => bytes(7, halfGraph(graph, weights)) }));
  } finally {
    closeSync(from);
    closeSync(to);
  }
  return out;
}
