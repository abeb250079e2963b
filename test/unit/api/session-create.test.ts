import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import vm from 'node:vm';
import { afterAll, describe, expect, it } from 'vitest';
import { expectFailure, floats, ort, ours } from '../../fixtures/engine.js';
import { add, identity } from '../../fixtures/models.js';
import { model, node, oneNode } from '../../fixtures/onnx-writer.js';

const { InferenceSession } = ort;
const bytes = add();
const folder = mkdtempSync(join(tmpdir(), 'infernode-'));
afterAll(() => rmSync(folder, { recursive: true }));

async function sumOf(session: any): Promise<number[]> {
  const { c } = await session.run({ a: floats([1, 2]), b: floats([10, 20]) });
  await session.release();
  return [...c.data];
}

describe('a model comes from', () => {
  const exact = bytes.buffer.slice(0) as ArrayBuffer;
  const padded = new Uint8Array(bytes.length + 12);
  padded.set(bytes, 5);

  it.each<[string, unknown[]]>([
    ['a Uint8Array', [bytes]],
    ['a Buffer', [Buffer.from(bytes)]],
    ['a part of a larger Uint8Array', [padded.subarray(5, 5 + bytes.length)]],
    ['an ArrayBuffer', [exact]],
    ['an ArrayBuffer with options', [exact, {}]],
    ['an ArrayBuffer and offset', [padded.buffer.slice(0, 5 + bytes.length), 5]],
    ['an ArrayBuffer, offset and length', [padded.buffer, 5, bytes.length]],
    ['an ArrayBuffer, offset, length and options', [padded.buffer, 5, bytes.length, {}]],
  ])('%s', async (_, args) => {
    expect(await sumOf(await InferenceSession.create(...args))).toEqual([11, 22]);
  });

  it('a path, of any script', async () => {
    for (const name of ['model.onnx', 'модель 模型.onnx']) {
      writeFileSync(join(folder, name), bytes);
      expect(await sumOf(await InferenceSession.create(join(folder, name)))).toEqual([11, 22]);
    }
  });

  it.runIf(ours)('a SharedArrayBuffer or an array over one', async () => {
    const shared = new SharedArrayBuffer(bytes.length);
    new Uint8Array(shared).set(bytes);
    expect(await sumOf(await InferenceSession.create(shared))).toEqual([11, 22]);
    expect(await sumOf(await InferenceSession.create(new Uint8Array(shared)))).toEqual([11, 22]);
  });

  it.runIf(ours)('bytes of another realm', async () => {
    const foreign = vm.runInNewContext('Uint8Array.from(list)', { list: [...bytes] });
    expect(foreign).not.toBeInstanceOf(Uint8Array);
    expect(await sumOf(await InferenceSession.create(foreign))).toEqual([11, 22]);
    expect(await sumOf(await InferenceSession.create(foreign.buffer))).toEqual([11, 22]);
  });
});

describe('create refuses', () => {
  it.each<[string, unknown[]]>([
    ['nothing', []],
    ['null', [null]],
    ['a number', [5]],
    ['a DataView', [new DataView(bytes.buffer)]],
    ['a Float32Array', [new Float32Array(4)]],
    ['a plain object', [{}]],
  ])('%s', async (_, args) => {
    await expectFailure(() => InferenceSession.create(...args), {
      type: TypeError,
      message: 'argument[0]',
      code: 'INVALID_ARGUMENT',
    });
  });

  const buffer = bytes.buffer as ArrayBuffer;
  it.each<[string, unknown[], RegExp]>([
    ['a negative offset', [buffer, -1], /'byteOffset'/],
    ['an offset at the end', [buffer, buffer.byteLength], /'byteOffset'/],
    ['a broken offset', [buffer, 1.5], /'byteOffset'/],
    ['a length of zero', [buffer, 0, 0], /'byteLength'/],
    ['a negative length', [buffer, 0, -5], /'byteLength'/],
    ['a length past the end', [buffer, 2, buffer.byteLength], /'byteLength'/],
    ['a broken length', [buffer, 0, 1.5], /'byteLength'/],
  ])('%s', async (_, args, message) => {
    await expectFailure(() => InferenceSession.create(...args), {
      type: RangeError,
      message,
      code: 'INVALID_ARGUMENT',
    });
  });

  it.each<[string, unknown[], RegExp]>([
    ['a string for options', [bytes, 'all'], /'options'/],
    ['null for options', ['model.onnx', null], /'options'/],
    ['a number for options', [bytes, 0, 5], /'options'/],
    ['a string for options after a range', [buffer, 0, buffer.byteLength, 'all'], /'options'/],
    ['a string for the length', [buffer, 0, '5'], /'byteLength'/],
  ])('%s', async (_, args, message) => {
    await expectFailure(() => InferenceSession.create(...args), { type: TypeError, message, code: 'INVALID_ARGUMENT' });
  });

  it.each(['no such model.onnx', 'file:///no/such/model.onnx', 'https://localhost/model.onnx'])(
    "a file that isn't there: %s",
    async (path) => {
      await expectFailure(() => InferenceSession.create(path), {
        message: /failed|File doesn't exist/,
        code: 'IO',
        fields: { path: path.replace('file://', '') },
      });
    },
  );
});

describe('names and metadata', () => {
  it('stand on the session in the order of the model', async () => {
    const session = await InferenceSession.create(bytes);
    expect(session.inputNames).toEqual(['a', 'b']);
    expect(session.outputNames).toEqual(['c']);
    expect(session.inputMetadata).toEqual([
      { name: 'a', isTensor: true, type: 'float32', shape: [2] },
      { name: 'b', isTensor: true, type: 'float32', shape: [2] },
    ]);
    expect(session.outputMetadata).toEqual([{ name: 'c', isTensor: true, type: 'float32', shape: [2] }]);
    session.config = { kept: true }; // as transformers.js does
    expect(session.config).toEqual({ kept: true });
    await session.release();
    expect(session.inputNames).toEqual(['a', 'b']);
  });

  it.runIf(ours)('have what the file says of itself', async () => {
    const info = { name: 'x', type: 'float32', shape: [2] } as const;
    const properties = { names: "{0: 'person'}", stride: '32' };
    const spec = { producer: 'a converter', properties, opset: 18 };
    const session = await InferenceSession.create(oneNode('Neg', [info], [{ ...info, name: 'y' }], { model: spec }));
    expect(session.metadata).toMatchObject({ producerName: 'a converter', custom: properties });
    await session.release();
  });

  it.each<[string, any, any]>([
    ['of unknown rank', undefined, []],
    ['with symbolic dims', ['batch', 3], ['batch', 3]],
    ['with unnamed dims', ['', 3], ['', 3]],
    ['of static dims', [2, 4], [2, 4]],
    ['of a scalar', [], []],
  ])('show a shape %s', async (_, declared, shown) => {
    const session = await InferenceSession.create(identity('float32', declared));
    expect(session.inputMetadata[0].shape).toEqual(shown);
    expect(session.outputMetadata[0].shape).toEqual(shown);
    await session.release();
  });

  it('give a dim of an output the name that the file gives it', async () => {
    const info = (name: string, shape: (number | string)[]) => ({ name, type: 'float32' as const, shape });
    const cache = model({
      nodes: [node('Concat', ['past', 'x'], ['present'], { attributes: { axis: 1n } })],
      inputs: [info('past', ['batch', 'past_length']), info('x', ['batch', 'length'])],
      outputs: [info('present', ['batch', 'total_length'])],
    });
    const session = await InferenceSession.create(cache);
    expect(session.outputMetadata[0].shape).toEqual(['batch', 'total_length']);
    const { present } = await session.run({ past: floats([1, 2], [1, 2]), x: floats([3], [1, 1]) });
    expect(present.dims).toEqual([1, 3]);
    await session.release();
  });
});
