import { types } from 'node:util';

import type { NativeError } from './errors.js';
import { elementTypes, type ElementType } from './tensor/element-types.js';
import { nearestName } from './options/nearest-name.js';
import { describe } from './tensor/tensor-data.js';

// What to do about it, as a sentence that follows an error's message: empty where there is nothing to say.

/** About a name that is not among those there are: the nearest of them, or else all. `what` names them ("outputs"). */
export function nameHint(name: string, known: readonly string[], what: string): string {
  const nearest = nearestName(name, known);
  if (nearest !== undefined) return ` Did you mean '${nearest}'?`;
  return known.length === 0 ? '' : ` The ${what} are ${listed(known)}.`;
}

/** About a name that is no type: the nearest, or all; ONNX's own names are not JavaScript's ('float' is 'float32'). */
export function typeNameHint(name: string): string {
  const same = elementTypes.find(({ onnxName }) => onnxName === name.toLowerCase());
  if (same !== undefined) return ` Did you mean '${same.name}'?`;
  return nameHint(
    name,
    elementTypes.map((type) => type.name),
    'types',
  );
}

/** About what was given for a model and is neither a path nor bytes. */
export function modelHint(value: unknown): string {
  const got = ` Got ${describe(value)}.`;
  if (typeof value !== 'object' || value === null) return got;
  return promiseHint(value) || got;
}

/** About what is a Promise. */
export function promiseHint(value: unknown): string {
  return types.isPromise(value) ? ' It is a Promise: await it first.' : '';
}

const homeHint = 'The shell expands ~, Node.js does not: give os.homedir() and the rest.';
const isHomePath = (path: string): boolean => /^~([/\\]|$)/.test(path);

/** What is longer is no path, most likely. */
const mostOfPath = 200;

const isBase64 = (path: string): boolean => path.length > mostOfPath && /^[A-Za-z0-9+/_-]+={0,2}\s*$/.test(path);

/** What was given for a model's path, for a message: a model's own text is left out. */
export function shownModel(path: string): string {
  const data = /^data:[^,]{0,100},/i.exec(path)?.[0];
  if (data !== undefined && path.length > data.length + 20) return `${data}... (${path.length} characters)`;
  return isBase64(path) ? `a text of ${path.length} characters` : shownPath(path);
}

/** What was given for a path, for a message: cut short where it is too long for one. */
export function shownPath(path: string): string {
  return path.length > mostOfPath ? `${path.slice(0, 60)}... (${path.length} characters)` : path;
}

/** About a path that is written to, which would become a folder named ~. */
export function homeOptionHint(path: string): string {
  return isHomePath(path) ? `${homeHint} A folder of that name is './${path}'.` : '';
}

/** About a path that could not be opened. */
export function pathHint(path: string): string {
  if (path.length > mostOfPath && /^[0-9a-f]+$/i.test(path)) {
    return " It looks like hex: give the bytes, Buffer.from(text, 'hex').";
  }
  if (path.includes('\0')) return " It looks like a file's content: read it without an encoding, or give its path.";
  if (isBase64(path)) {
    return " It looks like base64: give the bytes, Buffer.from(text, 'base64').";
  }
  if (/^(https?|data|blob):/i.test(path)) return ' It is a URL: give new URL(text), which is fetched.';
  if (isHomePath(path)) return ` ${homeHint}`;
  return '';
}

/** About data of another kind than a tensor's type has. */
export function dataHint(type: ElementType | undefined, data: unknown): string {
  if (data === undefined) return ' No data was given.';
  const promise = promiseHint(data);
  if (promise !== '' || type === undefined) return promise;
  const given = describe(data);
  const numbers = [
    'Float32Array',
    'Float64Array',
    'Int8Array',
    'Int16Array',
    'Uint16Array',
    'Int32Array',
    'Uint32Array',
  ];
  if (type.name === 'float16') return ` Got ${given}: give the bits of float16 numbers, or a Float16Array.`;
  if (given === 'ArrayBuffer') return ` Got ArrayBuffer: give new ${type.array}(buffer).`;
  if (types.isDataView(data) || given === 'Uint8Array') {
    return ` Got ${types.isDataView(data) ? 'DataView' : given}: where it holds the numbers' bytes, give new ${type.array}(data.buffer, data.byteOffset, length).`;
  }
  if (!numbers.includes(given)) return ` Got ${given}.`;
  const convert = type.array.startsWith('Big') ? '(data, BigInt)' : '(data)';
  return ` Got ${given}: ${type.array}.from${convert} converts it.`;
}

/** About a feed that the model does not take: its whole shape, or its type by the name that a tensor has. */
export function feedHint({ message, expected = '', actual = '' }: NativeError): string {
  if (message.startsWith('Got invalid dimensions')) return ` ${actual} was given for ${expected}.`;
  if (!message.includes('Unexpected input data type')) return '';
  const nameOf = (text: string): string | undefined =>
    elementTypes.find(({ onnxName }) => text === `tensor(${onnxName})`)?.name;
  const [given, wanted] = [nameOf(actual), nameOf(expected)];
  return given === undefined || wanted === undefined ? '' : ` A '${given}' tensor was given for '${wanted}'.`;
}

/** About feeds without an element, such as a text of no tokens, which few models take. */
export function emptyHint(message: string): string {
  const fed = message.split(' The run was fed ')[1] ?? '';
  const empty = [...fed.matchAll(/'([^']*)' \w+\[(?:\d+,)*0(?:,\d+)*\]/g)].map(([, name = '']) => name);
  if (empty.length === 0) return '';
  return ` ${listed(empty)} ${empty.length === 1 ? 'is' : 'are'} empty: a dim is 0, which this model may not take.`;
}

/** A message that ends as a sentence does, so that another one may follow. */
export function sentence(message: string): string {
  return /[.?!]$/.test(message) ? message : `${message}.`;
}

/** About memory that a run wanted and that is not there. */
export function runMemoryHint(message: string): string {
  const less = 'feed less at a time: a smaller batch, shorter sequences, a smaller picture';
  if (message.includes('memoryLimit')) return ` Raise the session's option 'memoryLimit', or ${less}.`;
  if (message.includes('gpu_mem_limit')) return ` Raise the provider's option 'gpuMemLimit', or ${less}.`;
  const keep = "enableCpuMemArena: false, or extra: { memory: { enable_memory_arena_shrinkage: 'cpu:0' } } of a run";
  return ` Let fewer runs go at a time (the option 'maxConcurrentRuns'), have them keep no memory for the next (${keep}), or ${less}.`;
}

/** The same of a load, from bytes or by a path. */
export function loadMemoryHint(fromBytes: boolean): string {
  const path = fromBytes
    ? 'Give the path of the model, whose file is mapped, in the place of its bytes, or release'
    : 'Release';
  return ` ${path} sessions that nobody uses.`;
}

/** Names in quotes: the first twenty, and how many follow. */
export function listed(names: readonly string[]): string {
  const most = 20;
  const shown = names
    .slice(0, most)
    .map((name) => `'${name}'`)
    .join(', ');
  return names.length > most ? `${shown} and ${names.length - most} more` : shown;
}
