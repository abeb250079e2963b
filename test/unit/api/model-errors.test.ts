import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { expectFailure, floats, ort, ours } from '../../fixtures/engine.js';
import { add } from '../../fixtures/models.js';
import { model, node, oneNode, type TensorInfo } from '../../fixtures/onnx-writer.js';
import { withBystander } from '../support/bystander.js';

const { InferenceSession } = ort;
const quiet = { logSeverityLevel: 4 };
const folder = mkdtempSync(join(tmpdir(), 'infernode-'));
afterAll(() => rmSync(folder, { recursive: true }));
const x: TensorInfo = { name: 'x', type: 'float32', shape: [2] };
const y: TensorInfo = { name: 'y', type: 'float32', shape: [2] };
withBystander();

describe('a file that is no model', () => {
  const pointer = 'version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 12345\n';
  const whole = add();
  const cut = whole.subarray(0, whole.length - 20);
  const zip = Uint8Array.of(0x50, 0x4b, 3, 4, 20, 0, 0, 0, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);

  const page =
    'It looks like an HTML page: the download gave a web page, perhaps an error or a login, instead of the file; check its address.';
  const lfs = "It looks like a Git LFS pointer to a file of 12345 bytes: run 'git lfs pull' to fetch the file itself.";
  const archive = 'It looks like a zip archive: unpack it and load the .onnx file inside.';
  const end = 'It is truncated at byte 81: field 7 reaches beyond the end, from byte 19 on. Fetch or export it again.';
  const nothing = 'It is empty: the download or export did not finish.';

  it.each<[string, Uint8Array | string, string]>([
    ['HTML', '<!DOCTYPE html><html><body>Not found</body></html>', page],
    ['a Git LFS pointer', pointer, lfs],
    ['a ZIP archive', zip, archive],
    ['cut off', cut, end],
  ])('%s, is refused', async (kind, content, looksLike) => {
    const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content;
    const path = join(folder, `${kind.replace(/ /g, '-')}.onnx`);
    writeFileSync(path, bytes);
    const fromBytes = await expectFailure(() => InferenceSession.create(bytes, quiet), {
      message: 'Failed to load model because protobuf parsing failed.',
      code: 'INVALID_MODEL',
    });
    const fromPath = await expectFailure(() => InferenceSession.create(path, quiet), {
      message: `Load model from ${path} failed:Protobuf parsing failed.`,
      code: 'INVALID_MODEL',
      fields: { path },
    });
    if (!ours) return;
    expect(fromBytes.message).toBe(`Failed to load model because protobuf parsing failed. ${looksLike}`);
    expect(fromPath.message).toBe(`Load model from ${path} failed:Protobuf parsing failed. ${looksLike}`);
  });

  it.runIf(ours)('is refused with the address that it came from', async () => {
    const server = createServer((_, response) => response.end('<!DOCTYPE html><html></html>'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = `http://127.0.0.1:${(server.address() as { port: number }).port}/m.onnx`;
    await expectFailure(() => (InferenceSession as any).create(new URL(address), quiet), {
      message: `It came from ${address}.`,
      code: 'INVALID_MODEL',
      fields: { path: address },
    });
    server.close();
  });

  it('but empty, is refused', async () => {
    const path = join(folder, 'empty.onnx');
    writeFileSync(path, '');
    for (const bytes of [new Uint8Array(0), new ArrayBuffer(0)]) {
      await expectFailure(() => InferenceSession.create(bytes, quiet), {
        message: ours ? `Failed to load model because protobuf parsing failed. ${nothing}` : /null|graph/,
        code: 'INVALID_MODEL',
      });
    }
    await expectFailure(() => InferenceSession.create(path, quiet), {
      message: ours ? `Load model from ${path} failed:Protobuf parsing failed. ${nothing}` : /graph/,
      code: 'INVALID_MODEL',
      fields: { path },
    });
  });

  it('but absent, is refused', async () => {
    const path = join(folder, 'absent.onnx');
    await expectFailure(() => InferenceSession.create(path, quiet), {
      message: `Load model from ${path} failed:Load model ${path} failed. File doesn't exist`,
      code: 'IO',
      fields: { path },
    });
  });

  it('but a folder, is refused', async () => {
    const path = join(folder, 'folder.onnx');
    mkdirSync(path);
    await expectFailure(() => InferenceSession.create(path, quiet), {
      message: ours ? `Load model from ${path} failed: it is not a regular file` : /directory/,
      code: 'IO',
      fields: { path },
    });
  });

  it('with any one byte changed, never ends the process', async () => {
    const feeds = { a: floats([1, 2]), b: floats([3, 4]) };
    for (let i = 0; i < whole.length; i++) {
      for (const mask of [0x01, 0x80, 0xff]) {
        const flipped = whole.slice();
        flipped[i]! ^= mask;
        const session = await InferenceSession.create(flipped, quiet).catch((error: Error) => {
          expect(error).toBeInstanceOf(Error);
        });
        await session?.run(feeds, quiet).catch((error: Error) => expect(error).toBeInstanceOf(Error));
        await session?.release();
      }
    }
  });
});

describe('a model', () => {
  const refuse = (bytes: Uint8Array, expected: Parameters<typeof expectFailure>[1]) =>
    expectFailure(() => InferenceSession.create(bytes, quiet), expected);

  it('with an operator that does not exist', async () => {
    await refuse(oneNode('Frobnicate', [x], [y], { name: 'odd' }), {
      message:
        /^This is an invalid model\. In Node, .*\bodd\b.*No Op registered for Frobnicate with domain_version of 17/,
      code: 'UNSUPPORTED_OPERATOR',
      fields: { node: 'odd', opType: 'Frobnicate' },
    });
  });

  it('with an operator of an unknown domain', async () => {
    const opsets = { 'com.example': 1 };
    await refuse(oneNode('Frobnicate', [x], [y], { domain: 'com.example', model: { opsets } }), {
      message: /Frobnicate[^]* is not a registered function\/op/,
      code: 'UNSUPPORTED_OPERATOR',
      fields: { opType: 'Frobnicate' },
    });
  });

  it.runIf(ours)('with many such operators names them all', async () => {
    const names = Array.from({ length: 10 }, (_, i) => `Unheard${i}`);
    const nodes = names.map((name, i) => node(name, [i ? `v${i - 1}` : 'x'], [i === 9 ? 'y' : `v${i}`]));
    const error = await refuse(model({ nodes, inputs: [x], outputs: [y] }), {
      message: 'This is an invalid model: 10 operators are not known:',
      code: 'UNSUPPORTED_OPERATOR',
      fields: { opType: 'Unheard0' },
    });
    expect(error.details).toHaveLength(10);
    names.forEach((name, i) => {
      expect(error.details[i]).toContain(`No Op registered for ${name} with domain_version of 17`);
      expect(error.message).toContain(error.details[i]);
    });
  });

  it('that imports an unknown domain without using it loads', async () => {
    const session = await InferenceSession.create(
      oneNode('Identity', [x], [y], { model: { opsets: { 'com.example': 1 } } }),
    );
    expect([...(await session.run({ x: floats([1, 2]) })).y.data]).toEqual([1, 2]);
    await session.release();
  });

  it('with an operator that has no kernel for the type', async () => {
    const strings = (name: string): TensorInfo => ({ name, type: 'string', shape: [1, 1, 4, 4] });
    await refuse(oneNode('Conv', [strings('x'), strings('w')], [strings('y')], { name: 'conv' }), {
      message: ours
        ? "Conv 'conv' has the type tensor(string) for input 'X'; Conv version 11 takes float32, float16, float64"
        : /Conv/,
      code: 'INVALID_MODEL',
      fields: { node: 'conv', opType: 'Conv' },
    });
  });

  it('of a future operator set', async () => {
    await refuse(oneNode('Identity', [x], [y], { model: { opset: 999 } }), {
      message: ours
        ? 'ValidateOpsetForDomain: the model imports opset 999 of ai.onnx, and 28 is the newest known here. Export it with opset 28 or lower, or update infernode.'
        : /ValidateOpsetForDomain/,
      code: 'INVALID_MODEL',
    });
  });

  it('of a future format', async () => {
    await refuse(oneNode('Identity', [x], [y], { model: { irVersion: 99 } }), {
      message: ours ? /^Unsupported model IR version: 99, max/ : /Unsupported model IR version: 99, max/,
      code: 'INVALID_MODEL',
    });
  });

  it('with a cycle', async () => {
    const nodes = [node('Add', ['x', 'b'], ['a']), node('Identity', ['a'], ['b']), node('Identity', ['b'], ['y'])];
    await refuse(model({ nodes, inputs: [x], outputs: [y] }), {
      message: ours ? "the graph 'graph' has a cycle through node Add producing 'a'" : /graph/,
      code: 'INVALID_MODEL',
      fields: { opType: 'Add' },
    });
  });

  it('with one name for two values', async () => {
    const nodes = [node('Relu', ['x'], ['y']), node('Neg', ['x'], ['y'])];
    await refuse(model({ nodes, inputs: [x], outputs: [y] }), {
      message: ours
        ? "the name 'y' is defined more than once in graph 'graph': node Neg producing 'y' produces it again"
        : /\by\b/,
      code: 'INVALID_MODEL',
    });
  });

  it('with an input that nothing makes', async () => {
    await refuse(model({ nodes: [node('Add', ['x', 'ghost'], ['y'])], inputs: [x], outputs: [y] }), {
      message: ours
        ? "node Add producing 'y' in graph 'graph': its input 'ghost' is not an output of any node, an initializer or a graph input"
        : /ghost/,
      code: 'INVALID_MODEL',
      fields: { input: 'ghost', opType: 'Add' },
    });
  });

  it('with an output that nothing makes', async () => {
    await refuse(model({ nodes: [node('Relu', ['x'], ['z'])], inputs: [x], outputs: [y] }), {
      message: ours ? "output 'y' of graph 'graph' is produced by no node" : /\by\b/,
      code: 'INVALID_MODEL',
      fields: { output: 'y' },
    });
  });

  it('with a weight shorter than its dims', async () => {
    const initializers = [{ name: 'w', type: 'float32' as const, dims: [1000], data: Float32Array.of(1) }];
    await refuse(model({ nodes: [node('Add', ['x', 'w'], ['y'])], inputs: [x], outputs: [y], initializers }), {
      message: ours
        ? "tensor 'w': raw data of 4 bytes does not fit float32[1000], which takes 4000"
        : /\bw\b|Incompatible dimensions/,
      code: 'INVALID_MODEL',
      fields: { input: 'w' },
    });
  });

  it('with dims whose product overflows', async () => {
    const dims = [2 ** 31, 2 ** 31, 2 ** 31];
    const initializers = [{ name: 'w', type: 'float32' as const, dims, data: Float32Array.of(1) }];
    await refuse(model({ nodes: [node('Add', ['x', 'w'], ['y'])], inputs: [x], outputs: [y], initializers }), {
      message: ours
        ? "tensor 'w': dims [2147483648,2147483648,2147483648] have a product that overflows"
        : /overflow|size|bytes|Incompatible dimensions/,
      code: 'INVALID_MODEL',
      fields: { input: 'w' },
    });
  });
});

describe('external data', () => {
  const withWeights = (location: string, length = 8): Uint8Array =>
    model({
      nodes: [node('Add', ['x', 'w'], ['y'])],
      inputs: [x],
      outputs: [y],
      initializers: [
        { name: 'w', type: 'float32', dims: [2], data: Float32Array.of(0), external: { location, offset: 0, length } },
      ],
    });
  const write = (name: string, bytes: Uint8Array): string => {
    writeFileSync(join(folder, name), bytes);
    return join(folder, name);
  };

  it('is found beside the model', async () => {
    write('here.bin', new Uint8Array(Float32Array.of(100, 200).buffer));
    const session = await InferenceSession.create(write('here.onnx', withWeights('here.bin')));
    expect([...(await session.run({ x: floats([1, 2]) })).y.data]).toEqual([101, 202]);
    await session.release();
  });

  it('that is missing names the weight', async () => {
    const path = write('a.onnx', withWeights('none.bin'));
    await expectFailure(() => InferenceSession.create(path, quiet), {
      message: ours
        ? `Load model from ${path} failed:External data path validation failed for initializer: w. External data path does ` +
          `not exist: ${join(folder, 'none.bin')} (No such file or directory). Put the file next to the model, or pass it in externalData.`
        : /External data path validation failed for initializer: w/,
      code: 'IO',
      fields: { input: 'w', path: 'none.bin' },
    });
  });

  it('that is too short says how much is there', async () => {
    const short = write('short.bin', Uint8Array.of(1, 2, 3, 4));
    const path = write('b.onnx', withWeights('short.bin'));
    await expectFailure(() => InferenceSession.create(path, quiet), {
      message: ours
        ? `Load model from ${path} failed:External initializer: w offset: 0 size to read: 8 given file_length: 4 are out of ` +
          `bounds or can not be read in full: the file ${short} is too short. Fetch or export it again.`
        : /External initializer: w offset: 0 size to read: 8 given file_length: 4 are out of bounds or can not be read in full/,
      code: 'INVALID_MODEL',
      fields: { input: 'w', path: short },
    });
  });

  it('that the caller gives may be missing or too short', async () => {
    const given = (name: string) => ({ ...quiet, externalData: [{ path: name, data: new Uint8Array(4) }] });
    await expectFailure(() => InferenceSession.create(withWeights('w.bin'), given('other.bin')), {
      message: /External file: w\.bin not found from the table user provided/,
      code: 'INVALID_ARGUMENT',
      fields: { input: 'w', path: 'w.bin' },
    });
    await expectFailure(() => InferenceSession.create(withWeights('w.bin'), given('w.bin')), {
      message: /size to read: 8 given file_length: 4 are out of bounds or can not be read in full\./,
      code: 'INVALID_ARGUMENT',
      fields: { input: 'w', path: 'w.bin' },
    });
  });

  it.each([
    ['../outside.bin', 'it leads out of the folder'],
    ['/etc/hostname', 'it is absolute'],
    ['sub/../../outside.bin', 'it leads out of the folder'],
  ])('outside the folder is refused: %s', async (location, how) => {
    const inner = join(folder, 'inner');
    mkdirSync(inner, { recursive: true });
    write('outside.bin', new Uint8Array(8));
    const path = write('inner/c.onnx', withWeights(location));
    await expectFailure(() => InferenceSession.create(path, quiet), {
      message: ours
        ? `Load model from ${path} failed:External data path validation failed for initializer: w. External data path: ` +
          `${location} escapes model directory: ${inner} (${how})`
        : /External data path/,
      code: 'INVALID_MODEL',
      fields: { input: 'w', path: location },
    });
  });
});
