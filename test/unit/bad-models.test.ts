import { spawnSync } from 'node:child_process';
import { linkSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectFailure, failureOf, floats, ort, ours } from '../fixtures/engine.js';
import { add, gather } from '../fixtures/models.js';
import { lengthPrefix, message, model, node, oneNode, tensorProto, type ModelSpec } from '../fixtures/onnx-writer.js';
import { withBystander } from './support/bystander.js';
import { create, external, info, quiet, refuse, x, y } from './support/refusals.js';

const { InferenceSession } = ort;
const folder = mkdtempSync(join(tmpdir(), 'infernode-bad-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const write = (name: string, bytes: Uint8Array): string => {
  writeFileSync(join(folder, name), bytes);
  return join(folder, name);
};
withBystander();

describe.runIf(ours)('a model file', () => {
  it.each<[string, Uint8Array | string, RegExp]>([
    ['JSON', '{"error":"not found"}', /JSON/],
    [
      'a PyTorch checkpoint',
      Buffer.from('PK\x03\x04\0\0\x08\x08\0\0\0\0\0\0archive/data.pkl', 'latin1'),
      /zip|PyTorch/i,
    ],
    ['gzip', Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3, 4), /gzip/i],
    ['plain text', 'Access denied. Sign in to continue.\n', /text/i],
    ['a picture', Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13), /PNG|image/i],
    ['safetensors', Buffer.from('\x10\0\0\0\0\0\0\0{"__metadata__":{', 'latin1'), /safetensors/i],
    ['zeros', new Uint8Array(4096), /It looks like zeros: the file was reserved but never written; fetch it again\.$/],
    ['a flash chip wiped', new Uint8Array(600).fill(0xff), /^(?!.*plain text)/],
    ['noise', Uint8Array.from({ length: 4096 }, (_, i) => (i * 2654435761) >>> 13), /at byte \d+/],
  ])('that is %s says so', async (_, content, looksLike) => {
    const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content;
    const error = await refuse(bytes, { message: looksLike, code: 'INVALID_MODEL' });
    expect(error.message).toMatch(/^Failed to load model because protobuf parsing failed\./);
  });

  it('of a name that no file can have says so', () =>
    expectFailure(() => InferenceSession.create('model\0.onnx'), {
      message: 'Load model failed: the path holds a null character, which no file name can have',
      code: 'INVALID_ARGUMENT',
    }));

  it('in a buffer that was given away says so', async () => {
    const bytes = add();
    const buffer = bytes.buffer as ArrayBuffer;
    structuredClone(buffer, { transfer: [buffer] });
    for (const given of [buffer, bytes]) {
      const error = await failureOf(() => InferenceSession.create(given as Uint8Array, quiet));
      expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(/detached/) });
    }
  });

  it('cut at any byte is refused', async () => {
    const whole = gather();
    for (let length = 0; length < whole.length; length++) {
      const session = await create(whole.slice(0, length)).catch((error: any) => {
        expect(error).toMatchObject({ code: 'INVALID_MODEL' });
      });
      // Only a cut between fields that are no part of the graph may leave a model.
      if (session) await session.release();
    }
  });

  it('that is missing says which', async () => {
    for (const path of [join(folder, 'none.onnx'), join(folder, 'none', 'none.onnx'), '\0', 'x'.repeat(5000)]) {
      const error = await failureOf(() => InferenceSession.create(path, quiet));
      expect(['IO', 'INVALID_ARGUMENT']).toContain(error.code);
    }
  });
});

describe.runIf(ours)('a model', () => {
  it('with unknown operators names all of them, nested ones too', async () => {
    const branch = (op: string) => ({
      nodes: [node(op, ['x'], ['z'])],
      outputs: [info('z')],
    });
    const spec = {
      nodes: [
        node('Unheard', ['x'], ['a'], { name: 'first' }),
        node('Unheard', ['a'], ['b']),
        node('Relu', ['b'], ['d'], { domain: 'com.example' }),
        node('If', ['c'], ['y'], { attributes: { then_branch: branch('Unseen'), else_branch: branch('Relu') } }),
      ],
      inputs: [x, info('c', 'bool', [])],
      outputs: [y],
      opsets: { 'com.example': 3 },
    };
    const error = await refuse(spec, { message: /Unheard[^]*Unseen/, code: 'UNSUPPORTED_OPERATOR' });
    expect(error.message).toContain('com.example');
    expect(error).toMatchObject({ opType: 'Unheard', node: 'first' });
    expect(error.details).toHaveLength(3);
  });

  it('with a misspelt operator gets the nearest', async () => {
    await refuse(oneNode('LeakyReLU', [x], [y]), { message: /LeakyRelu/, code: 'UNSUPPORTED_OPERATOR' });
  });

  it('with a type that an operator does not take says what it takes', async () => {
    const error = await refuse(oneNode('Conv', [info('x', 'string'), info('w', 'string')], [info('y', 'string')]), {
      message: /Conv[^]*string[^]*float/,
      code: 'INVALID_MODEL',
    });
    expect(error).toMatchObject({ opType: 'Conv' });
  });

  it('with inputs of types that must be the same', async () => {
    await refuse(oneNode('Add', [x, info('b', 'int32')], [y]), {
      message: /Add[^]*float[^]*int32/,
      code: 'INVALID_MODEL',
      fields: { opType: 'Add' },
    });
  });

  it.each<[string, ModelSpec, RegExp]>([
    ['too few inputs', { nodes: [node('Add', ['x'], ['y'])] }, /Add[^]*1 inputs/],
    ['too many inputs', { nodes: [node('Relu', ['x', 'x'], ['y'])] }, /Relu[^]*2 inputs/],
    ['an empty required input', { nodes: [node('Add', ['x', ''], ['y'])] }, /Add[^]*'B'/],
    ['too many outputs', { nodes: [node('Relu', ['x'], ['y', 'z'])] }, /Relu[^]*2 outputs/],
    [
      'a cycle',
      {
        nodes: [
          node('Add', ['x', 'b'], ['a'], { name: 'turn' }),
          node('Relu', ['a'], ['b']),
          node('Neg', ['b'], ['y']),
        ],
      },
      /cycle/,
    ],
    ['a node that feeds itself', { nodes: [node('Add', ['x', 'y'], ['y'])] }, /cycl|Add/],
    ['two values of one name', { nodes: [node('Relu', ['x'], ['y']), node('Neg', ['x'], ['y'])] }, /'y'/],
    ['an output named as an input', { nodes: [node('Relu', ['x'], ['x'])] }, /'x'/],
    ['two inputs of one name', { nodes: [node('Relu', ['x'], ['y'])], inputs: [x, x] }, /'x'/],
    [
      'an attribute of another type',
      { nodes: [node('Softmax', ['x'], ['y'], { attributes: { axis: 'one' } })] },
      /axis/,
    ],
    ['no required attribute', { nodes: [node('Cast', ['x'], ['y'])] }, /'to'/],
    ['an attribute of an unknown type', { nodes: [node('Cast', ['x'], ['y'], { attributes: { to: 99n } })] }, /99/],
  ])('with %s', async (_, spec, text) => {
    const error = await refuse({ inputs: [x], outputs: [y], ...spec }, { message: text, code: 'INVALID_MODEL' });
    expect(error.message).not.toMatch(/INTERNAL|std::/);
  });

  it('with an input of no type', async () => {
    const graph = message([1, message([1, 'x'], [2, 'y'], [4, 'Relu'])], [2, 'g'], [11, message([1, 'x'])], [12, message([1, 'y'])]); // prettier-ignore
    await refuse(message([1, 8], [7, graph], [8, message([1, ''], [2, 17])]), {
      message: /'x'[^]*type/,
      code: 'INVALID_MODEL',
      fields: { input: 'x' },
    });
  });

  it.each([100, 10_000])('with %i graphs in each other', async (depth) => {
    // Written from the inside out: what stands before the innermost graph, last part first, and what follows it.
    const before: Uint8Array[] = [message([1, message([1, 'k'], [2, 'z'], [4, 'Identity'])], [2, 'g'], [12, message([1, 'z'])])]; // prettier-ignore
    const after: Uint8Array[] = [];
    let size = before[0]!.length;
    const wrap = (number: number, first: Uint8Array, last: Uint8Array): void => {
      const prefix = lengthPrefix(number, size);
      before.push(prefix, first);
      after.push(last);
      size += prefix.length + first.length + last.length;
    };
    const nothing = new Uint8Array();
    for (let i = 0; i < depth; i++) {
      wrap(6, message([1, 'then_branch']), message([20, 5])); // an attribute that holds the graph
      wrap(5, message([1, 'c'], [2, 'z'], [4, 'If']), nothing); // a node that holds the attribute
      wrap(1, nothing, message([2, 'g'], [12, message([1, 'z'])])); // a graph that holds the node
    }
    const body = Buffer.concat([...before.reverse(), ...after]);
    const bytes = message([1, 8], [7, body], [8, message([1, ''], [2, 17])]);
    await refuse(bytes, { message: /nested|deep/, code: 'INVALID_MODEL' });
  });

  it('with types in each other without end', async () => {
    let type = message([1, message([1, 1])]);
    for (let i = 0; i < 10_000; i++) type = message([4, message([1, type])]);
    const graph = message([1, message([1, 'x'], [2, 'y'], [4, 'Identity'])], [2, 'g'], [11, message([1, 'x'], [2, type])], [12, message([1, 'y'])]); // prettier-ignore
    await refuse(message([1, 8], [7, graph], [8, message([1, ''], [2, 17])]), {
      message: /deep/,
      code: 'INVALID_MODEL',
    });
  });

  it.each([
    ['overflow', [2 ** 40, 2 ** 40]],
    ['are negative', [-1]],
    ['are many', new Array(2000).fill(1)],
    ['are more than the data', [1 << 30]],
  ])('with a weight whose dims %s', async (_, dims) => {
    const weight = tensorProto({ name: 'w', type: 'float32', dims, data: Float32Array.of(1) });
    const graph = message([1, message([1, 'w'], [2, 'y'], [4, 'Identity'])], [2, 'g'], [5, weight], [12, message([1, 'y'])]); // prettier-ignore
    await refuse(message([1, 8], [7, graph], [8, message([1, ''], [2, 17])]), {
      message: /'w'/,
      code: 'INVALID_MODEL',
      fields: { input: 'w' },
    });
  });

  it('with functions that call each other', async () => {
    const call = (op: string, input: string, output: string) => message([1, input], [2, output], [4, op], [7, 'l']);
    const calls = (name: string, other: string) =>
      message([1, name], [4, 'a'], [5, 'b'], [7, call(other, 'a', 'b')], [9, message([1, 'l'], [2, 1])], [10, 'l']);
    const graph = message([1, call('F', 'x', 'y')], [2, 'g'], [11, message([1, 'x'], [2, message([1, message([1, 1])])])], [12, message([1, 'y'])]); // prettier-ignore
    const opsets = ['', 'l'].map((domain) => [8, message([1, domain], [2, 17])] as [number, Uint8Array]);
    await refuse(message([1, 8], [7, graph], ...opsets, [25, calls('F', 'G')], [25, calls('G', 'F')]), {
      message: /F|G/,
      code: 'INVALID_MODEL',
    });
  });

  it('with functions that grow without bound', async () => {
    const call = (op: string, input: string, output: string) => message([1, input], [2, output], [4, op], [7, 'l']);
    const level = (i: number) =>
      message([1, `F${i}`], [4, 'a'], [5, 'j'], ...Array.from({ length: 10 }, (_, j) => [7, call(`F${i + 1}`, j ? `${'abcdefghij'[j]}` : 'a', 'bcdefghijj'[j]!.repeat(j === 9 ? 1 : 1))] as [number, Uint8Array]).slice(0, 9), [9, message([1, 'l'], [2, 1])], [10, 'l']); // prettier-ignore
    const last = message([1, 'F9'], [4, 'a'], [5, 'b'], [7, message([1, 'a'], [2, 'b'], [4, 'Neg'])], [9, message([1, ''], [2, 17])], [10, 'l']); // prettier-ignore
    const graph = message([1, call('F0', 'x', 'y')], [2, 'g'], [11, message([1, 'x'], [2, message([1, message([1, 1])])])], [12, message([1, 'y'])]); // prettier-ignore
    const opsets = ['', 'l'].map((domain) => [8, message([1, domain], [2, 17])] as [number, Uint8Array]);
    const functions = Array.from({ length: 9 }, (_, i) => [25, level(i)] as [number, Uint8Array]);
    await refuse(message([1, 8], [7, graph], ...opsets, ...functions, [25, last]), {
      message: "the model's functions expand to more than 1000000 nodes",
      code: 'INVALID_MODEL',
    });
  });
});

describe.runIf(ours)('external data', () => {
  const weights = (external: { location: string; offset?: any; length?: any }): Uint8Array =>
    model({
      nodes: [node('Add', ['x', 'w'], ['y'])],
      inputs: [x],
      outputs: [y],
      initializers: [{ name: 'w', type: 'float32', dims: [2], data: Float32Array.of(0), external }],
    });
  const load = (external: Parameters<typeof weights>[0]) =>
    InferenceSession.create(write('external.onnx', weights(external)), quiet);

  it.each<[string, Parameters<typeof weights>[0]]>([
    ['is missing', { location: 'none.bin' }],
    ['is a folder', { location: 'sub' }],
    ['has no name', { location: '' }],
    ['has a NUL in its name', { location: 'a\0b' }],
    ['starts beyond the end', { location: 'eight.bin', offset: 9, length: 8 }],
    ['ends beyond the end', { location: 'eight.bin', offset: 4, length: 8 }],
    ['has an offset near the end of the numbers', { location: 'eight.bin', offset: '18446744073709551615', length: 8 }],
    ['has an offset beyond all numbers', { location: 'eight.bin', offset: '99999999999999999999' }],
    ['has a negative offset', { location: 'eight.bin', offset: -8 }],
    ['has a length that does not fit', { location: 'eight.bin', length: 4 }],
    ['lies above the folder', { location: '../eight.bin' }],
    ['lies above through a folder', { location: 'sub/../../eight.bin' }],
    ['is named from the root', { location: '/etc/hostname' }],
    ['is a link to outside', { location: 'link.bin' }],
    ['is in a folder that is a link to outside', { location: 'linked/eight.bin' }],
  ])('that %s names the weight', async (_, external) => {
    mkdirSync(join(folder, 'sub'), { recursive: true });
    write('eight.bin', new Uint8Array(8));
    const outside = mkdtempSync(join(tmpdir(), 'infernode-outside-'));
    writeFileSync(join(outside, 'eight.bin'), new Uint8Array(8));
    try {
      for (const [target, path] of [
        [join(outside, 'eight.bin'), 'link.bin'],
        [outside, 'linked'],
      ] as const) {
        rmSync(join(folder, path), { force: true });
        symlinkSync(target, join(folder, path));
      }
      const error = await failureOf(() => load(external));
      expect(['IO', 'INVALID_MODEL']).toContain(error.code);
      expect(error.message).toMatch(/\bw\b/);
    } finally {
      rmSync(outside, { recursive: true });
    }
  });

  it('that is a hard link or a link within the folder is read', async () => {
    write('eight.bin', new Uint8Array(Float32Array.of(1, 2).buffer));
    for (const [path, link] of [
      ['hard.bin', linkSync],
      ['soft.bin', symlinkSync],
    ] as const) {
      rmSync(join(folder, path), { force: true });
      link(link === linkSync ? join(folder, 'eight.bin') : 'eight.bin', join(folder, path));
      const session = await load({ location: path });
      expect([...(await session.run({ x: floats([1, 1]) })).y.data]).toEqual([2, 3]);
      await session.release();
    }
  });
});

describe.runIf(ours && process.platform !== 'win32')('a pipe', () => {
  const pipe = join(folder, 'pipe');
  beforeAll(() => expect(spawnSync('mkfifo', [pipe]).status).toBe(0));

  it.each([
    ['the model', () => InferenceSession.create(pipe, quiet)],
    ['external data', () => create(external('pipe.bin'), { externalData: [{ path: 'pipe.bin', data: pipe }] })],
  ] as const)('is not waited for as %s', async (_, load) => {
    await expectFailure(load, { message: /pipe.*: it is not a regular file/, code: 'IO' });
  });

  it('is not replaced by an optimized model', async () => {
    await expectFailure(() => create(add(), { optimizedModelFilePath: pipe }), {
      message: /pipe.*: it is not a regular file/,
      code: 'IO',
    });
    expect(statSync(pipe).isFIFO()).toBe(true);
  });
});

describe.runIf(ours)('external data given by the caller', () => {
  const given = (data: unknown) => create(external('w.bin'), { externalData: [{ path: 'w.bin', data }] });

  it('that was transferred elsewhere is refused', async () => {
    const data = new ArrayBuffer(8);
    structuredClone(data, { transfer: [data] });
    await expectFailure(() => given(data), {
      message: /'externalData\[0\]\.data' is detached/,
      type: TypeError,
      code: 'INVALID_ARGUMENT',
    });
  });

  it('may change right after the call, as the model may', async () => {
    const bytes = external('w.bin');
    const data = new Uint8Array(Float32Array.of(3, 4).buffer);
    const loading = InferenceSession.create(bytes, { ...quiet, externalData: [{ path: 'w.bin', data }] });
    bytes.fill(0);
    data.fill(0);
    const session = await loading;
    const { y } = await session.run({ x: floats([1, 1]) });
    expect([...y.data]).toEqual([4, 5]);
    await session.release();
  });

  it('that only looks like a Blob is refused', async () => {
    await expectFailure(() => given({ arrayBuffer: () => 5 }), {
      message: "'externalData[0].data' must give an ArrayBuffer, got number",
      type: TypeError,
      code: 'INVALID_ARGUMENT',
    });
  });
});
