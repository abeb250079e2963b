import { inflateRawSync } from 'node:zlib';

import { Tensor } from '../index.js';
import { elementTypeOfName } from '../tensor/element-types.js';
import { bytesOf, zeros } from '../tensor/tensor-data.js';

/** numpy's names of little-endian types. */
const types: Readonly<Record<string, Tensor.Type>> = {
  '<f4': 'float32',
  '<f8': 'float64',
  '<f2': 'float16',
  '|i1': 'int8',
  '|u1': 'uint8',
  '<i2': 'int16',
  '<u2': 'uint16',
  '<i4': 'int32',
  '<u4': 'uint32',
  '<i8': 'int64',
  '<u8': 'uint64',
  '|b1': 'bool',
};

/** A tensor whose elements are these bytes. `fail` throws what is wrong. */
export function tensorOfBytes(
  type: Tensor.Type,
  dims: readonly number[],
  bytes: Uint8Array,
  fail: (why: string) => never,
): Tensor {
  const kind = elementTypeOfName(type);
  const size = dims.reduce((product, dim) => product * dim, 1);
  if (!kind?.common || kind.bits < 8) return fail(`has elements of type ${type}, which are not read here`);
  if (bytes.length !== (size * kind.bits) / 8) return fail(`has ${bytes.length} bytes for ${size} of ${type}`);
  const data = zeros(kind, size);
  bytesOf(data).set(bytes);
  return new Tensor(type as 'float32', data as Float32Array, dims);
}

/** The tensor of a .npy file. */
export function readNpy(file: Uint8Array, name: string): Tensor {
  const fail = (why: string): never => {
    throw new Error(`${name} ${why}`);
  };
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  if (file.length < 12 || Buffer.from(file.subarray(0, 6)).toString('latin1') !== '\x93NUMPY') fail('is no .npy file');
  const start = file[6] === 1 ? 10 : 12;
  const end = start + (file[6] === 1 ? view.getUint16(8, true) : view.getUint32(8, true));
  const header = Buffer.from(file.subarray(start, end)).toString('latin1');
  const descr = /'descr':\s*'([^']*)'/.exec(header)?.[1] ?? '';
  const shape = /'shape':\s*\(([\d,\s]*)\)/.exec(header)?.[1];
  const type = types[descr];
  if (type === undefined || shape === undefined)
    return fail(`has elements of type '${descr}', which are not read here`);
  const dims = shape.split(',').map((text) => text.trim()).filter((text) => text !== '').map(Number); // prettier-ignore
  if (/'fortran_order':\s*True/.test(header) && dims.length > 1)
    fail('has its first axis vary fastest: save it in C order');
  return tensorOfBytes(type, dims, file.subarray(end), fail);
}

/** The files of a .npz, which is a ZIP, by their names. */
function* entriesOf(file: Uint8Array, name: string): Generator<readonly [name: string, bytes: Uint8Array]> {
  const fail = (why: string): never => {
    throw new Error(`${name} ${why}`);
  };
  const buffer = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  const endRecord = buffer.lastIndexOf('PK\x05\x06', undefined, 'latin1');
  if (endRecord < 0 || endRecord + 22 > buffer.length) return fail('is no .npz file');
  let at = buffer.readUInt32LE(endRecord + 16);
  for (let left = buffer.readUInt16LE(endRecord + 10); left > 0; left--) {
    if (at + 46 > buffer.length || buffer.readUInt32LE(at) !== 0x02014b50) fail('is damaged, or larger than 4 GB');
    const method = buffer.readUInt16LE(at + 10);
    const size = buffer.readUInt32LE(at + 20);
    const [nameLength, extra, comment] = [28, 30, 32].map((offset) => buffer.readUInt16LE(at + offset)) as [number, number, number]; // prettier-ignore
    const local = buffer.readUInt32LE(at + 42);
    const entry = buffer.toString('utf8', at + 46, at + 46 + nameLength);
    if (local + 30 > buffer.length) fail('is damaged, or larger than 4 GB');
    const start = local + 30 + buffer.readUInt16LE(local + 26) + buffer.readUInt16LE(local + 28);
    if (start + size > buffer.length) fail('is damaged, or larger than 4 GB');
    const packed = buffer.subarray(start, start + size);
    if (method !== 0 && method !== 8) fail(`holds ${entry} packed by method ${method}, which is not read here`);
    yield [entry, method === 0 ? packed : inflateRawSync(packed)];
    at += 46 + nameLength + extra + comment;
  }
}

/** The tensors of a .npz file, by their names. */
export function readNpz(file: Uint8Array, name: string): Record<string, Tensor> {
  const tensors: Record<string, Tensor> = {};
  for (const [entry, bytes] of entriesOf(file, name)) {
    tensors[entry.replace(/\.npy$/, '')] = readNpy(bytes, `${name}: ${entry}`);
  }
  return tensors;
}
