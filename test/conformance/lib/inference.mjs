// What a session says of its outputs before any run, against their values and against what the onnx package infers.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bareModel } from './bare-model.mjs';
import { typeNames } from './onnx-data.mjs';

/** @typedef {{ kind: string, type: string | undefined, dims: (number | string)[] | undefined }} Said '' is an unknown dim */

/** TensorProtos of the first data set, by the input's name. */
function fedTensors({ folder, model }) {
  const files = model.inputs.map(({ name, kind }, i) => ({
    name,
    path: kind === 'tensor' ? join(folder, 'test_data_set_0', `input_${i}.pb`) : '',
  }));
  return new Map(files.filter(({ path }) => existsSync(path)).map(({ name, path }) => [name, readFileSync(path)]));
}

/** What the engine infers of the outputs of a case's model, stripped of what the file says of them. */
export async function inferred(ort, item, { symbolic }) {
  const bytes = bareModel(readFileSync(join(item.folder, 'model.onnx')), fedTensors(item), { symbolic });
  return saidOf(ort, bytes, { graphOptimizationLevel: 'disabled', logSeverityLevel: 4 });
}

/** @returns {Promise<Said[]>} */
export async function saidOf(ort, model, options) {
  const session = await ort.InferenceSession.create(model, options);
  try {
    // The public metadata writes an unknown rank as it writes a scalar.
    return session.handler.native.outputs.map(({ kind, optional, elementType, shape }) => ({
      kind: optional ? 'optional' : kind,
      type: elementType ? typeNames[elementType] : undefined,
      dims: kind === 'tensor' && !optional ? (shape ?? undefined) : undefined,
    }));
  } finally {
    await session.release();
  }
}

/** The fixture's spelling of one output: see test/generators/onnx-inference.py. */
export function parseSaid(words) {
  const parts = /^(?:(seq|optional)\()?(?:seq\()?([a-z0-9]+)\)*(?:\[(.*)\])?$/.exec(words);
  if (!parts) return { kind: undefined, type: undefined, dims: undefined };
  const [, kind = 'tensor', type, dims] = parts;
  const dim = (word) => (word === '?' ? '' : /^\d+$/.test(word) ? Number(word) : word);
  return {
    kind: kind === 'seq' ? 'sequence' : kind,
    type,
    dims: dims === undefined ? undefined : dims.split(',').filter(Boolean).map(dim),
  };
}

/** A symbol n5 stands for 5 in these models; '' and symbols of the package's own making are unknown. */
const sizeOf = (dim) => (typeof dim === 'number' ? dim : /^n\d+$/.test(dim) ? Number(dim.slice(1)) : undefined);

/** Why what is said cannot be true of a value; undefined where it can. */
export function contradictsValue(said, value) {
  if (said.kind !== 'tensor') return undefined;
  if (value === null || value.dims === undefined) return `a ${said.kind} is said, the answer is another kind`;
  if (said.type !== undefined && said.type !== value.type) return `${said.type} is said, the answer is ${value.type}`;
  return dimsDiffer(said.dims, value.dims);
}

/** Why two statements of one output cannot both be true. */
export function contradicts(ours, theirs) {
  if (theirs.kind === undefined) return undefined;
  if (ours.kind !== theirs.kind) return `${ours.kind}, not ${theirs.kind}`;
  if (ours.type !== undefined && ours.type !== theirs.type) return `${ours.type}, not ${theirs.type}`;
  return dimsDiffer(ours.dims, theirs.dims);
}

function dimsDiffer(ours, theirs) {
  if (!ours || !theirs) return undefined;
  const differ =
    ours.length !== theirs.length ||
    ours.some((dim, i) => {
      const [a, b] = [sizeOf(dim), sizeOf(theirs[i])];
      return a !== undefined && b !== undefined && a !== b;
    });
  return differ ? `[${ours}], not [${theirs}]` : undefined;
}

/** What `theirs` says that `ours` does not; undefined where there is nothing. */
export function missing(ours, theirs) {
  if (theirs.kind === undefined) return undefined;
  if (ours.type === undefined && theirs.type !== undefined) return `type ${theirs.type}`;
  if (!theirs.dims) return undefined;
  if (!ours.dims) return `rank ${theirs.dims.length}`;
  const less = theirs.dims.some((dim, i) => sizeOf(dim) !== undefined && sizeOf(ours.dims[i]) === undefined);
  return less ? `[${theirs.dims.map(String)}], not [${ours.dims.map((dim) => dim || '?')}]` : undefined;
}

/** Whether type and all dims are known. */
export const fullyKnown = ({ kind, type, dims }) =>
  type !== undefined && (kind !== 'tensor' || (dims !== undefined && dims.every((dim) => sizeOf(dim) !== undefined)));
