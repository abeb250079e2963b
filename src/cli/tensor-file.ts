import type { Tensor } from '../index.js';
import { elementTypeOfCode } from '../tensor/element-types.js';
import { tensorOfBytes } from './npy.js';

/** A field of a protobuf message: a number, or bytes. */
type Field = readonly [number: number, value: bigint | Uint8Array];

/** The fields of a message, in its order. */
function* fieldsOf(message: Uint8Array, fail: (why: string) => never): Generator<Field> {
  const view = new DataView(message.buffer, message.byteOffset, message.byteLength);
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      if (at >= message.length) break;
      const byte = message[at++] as number;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asIntN(64, value);
    }
    return fail('is damaged');
  };
  while (at < message.length) {
    const key = Number(varint());
    const [field, wire] = [key >> 3, key & 7];
    const length = wire === 2 ? Number(varint()) : wire === 1 ? 8 : wire === 5 ? 4 : 0;
    if (wire > 5 || wire === 3 || wire === 4 || length < 0 || at + length > view.byteLength) return fail('is damaged');
    yield [field, wire === 0 ? varint() : message.subarray(at, (at += length))];
  }
}

/** The numbers of a field of varints that may be packed. */
function* varintsOf(value: bigint | Uint8Array, fail: (why: string) => never): Generator<bigint> {
  if (typeof value === 'bigint') return yield value;
  let number = 0n;
  let shift = 0n;
  for (const byte of value) {
    number |= BigInt(byte & 0x7f) << shift;
    shift += 7n;
    if (byte >= 0x80) continue;
    yield BigInt.asIntN(64, number);
    [number, shift] = [0n, 0n];
  }
  if (shift > 0n) fail('is damaged');
}

/** Fields of TensorProto, by their numbers. */
const fields = { dims: 1, type: 2, floats: 4, int32s: 5, int64s: 7, name: 8, raw: 9, doubles: 10, uint64s: 11, location: 14 }; // prettier-ignore
const ofIntegers: readonly number[] = [fields.int32s, fields.int64s, fields.uint64s];

/** The tensor of a file that holds a TensorProto, as input_0.pb of ONNX's test data, and its name. */
export function readTensorFile(file: Uint8Array, path: string): readonly [name: string, tensor: Tensor] {
  const fail = (why: string): never => {
    throw new Error(`${path} ${why}`);
  };
  const dims: number[] = [];
  const integers: bigint[] = [];
  const floats: Uint8Array[] = [];
  let code = 0;
  let name = '';
  let raw: Uint8Array | undefined;
  for (const [field, value] of fieldsOf(file, fail)) {
    if (field === fields.dims) dims.push(...[...varintsOf(value, fail)].map(Number));
    else if (field === fields.type && typeof value === 'bigint') code = Number(value);
    else if (field === fields.name && typeof value !== 'bigint') name = Buffer.from(value).toString('utf8');
    else if (field === fields.raw && typeof value !== 'bigint') raw = value;
    else if ((field === fields.floats || field === fields.doubles) && typeof value !== 'bigint') floats.push(value);
    else if (ofIntegers.includes(field)) integers.push(...varintsOf(value, fail));
    else if (field === fields.location && value === 1n)
      fail('has its elements in another file, which is not read here');
  }
  const type = elementTypeOfCode(code) ?? fail('is no tensor');
  if (integers.length > 0) raw = bytesOfIntegers(integers, type.bits);
  return [name, tensorOfBytes(type.name, dims, raw ?? Buffer.concat(floats), fail)];
}

function bytesOfIntegers(integers: readonly bigint[], bits: number): Uint8Array {
  const size = bits / 8;
  const bytes = new DataView(new ArrayBuffer(Math.ceil(integers.length * size)));
  integers.forEach((value, i) => {
    if (size === 8) bytes.setBigInt64(i * 8, value, true);
    else if (size === 4) bytes.setInt32(i * 4, Number(BigInt.asIntN(32, value)), true);
    else if (size === 2) bytes.setInt16(i * 2, Number(BigInt.asIntN(16, value)), true);
    else bytes.setInt8(i, Number(BigInt.asIntN(8, value)));
  });
  return new Uint8Array(bytes.buffer);
}
