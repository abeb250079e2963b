// infernode/quantization and `infernode quantize`, as a program and a user have them.
import { execFile, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'; // prettier-ignore
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { projectRoot } from '../../scripts/lib/engine.mjs';
import { InferenceError, InferenceSession, Tensor } from '../../src/index.js';
import { quantizeDynamic, quantizeWeights } from '../../src/quantization.js';
import { dynamicExtraTable, dynamicTable } from '../../src/tools/dynamic-options.js';
import { tableRows, type Table } from '../../src/tools/option-table.js';
import { calibrationExtraTable, staticExtraTable, staticTable } from '../../src/tools/static-options.js';
import { weightsTable } from '../../src/tools/weights-options.js';
import { model, node, type TensorInfo } from '../fixtures/onnx-writer.js';

const start = promisify(execFile);
const root = mkdtempSync(join(tmpdir(), 'infernode-quantization-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const f32 = (name: string, shape: TensorInfo['shape']): TensorInfo => ({ name, type: 'float32', shape });
/** Numbers from -1 to 1. */
const drawn = (length: number): Float32Array =>
  Float32Array.from({ length }, (_, i) => (Math.sin(i + 1) * 43758.5453) % 1);

/** Two products of 64 by 64 and of 64 by 8. */
const bytes = model({
  nodes: [
    node('MatMul', ['x', 'first'], ['a'], { name: 'one' }),
    node('Relu', ['a'], ['b']),
    node('MatMul', ['b', 'second'], ['y'], { name: 'two' }),
  ],
  inputs: [f32('x', ['batch', 64])],
  outputs: [f32('y', ['batch', 8])],
  initializers: [
    { name: 'first', type: 'float32', dims: [64, 64], data: drawn(4096) },
    { name: 'second', type: 'float32', dims: [64, 8], data: drawn(512) },
  ],
});

let folder: string, path: string, output: string;
beforeEach(() => {
  folder = mkdtempSync(join(root, 'case-'));
  path = join(folder, 'model.onnx');
  output = join(folder, 'quantized.onnx');
  writeFileSync(path, bytes);
});

async function answer(file: string): Promise<Float32Array> {
  const session = await InferenceSession.create(file);
  const { y } = await session.run({ x: new Tensor('float32', drawn(128), [2, 64]) });
  await session.release();
  return (y as Tensor).data as Float32Array;
}

/** The signal's power over the error's, in decibels. */
function sqnr(actual: Float32Array, expected: Float32Array): number {
  const power = (values: Iterable<number>): number => [...values].reduce((sum, value) => sum + value * value, 0);
  return 10 * Math.log10(power(expected) / power(actual.map((value, i) => value - expected[i]!)));
}

describe('quantizeWeights', () => {
  it('writes a smaller model that gives nearly the same', async () => {
    const expected = await answer(path);
    const report = await quantizeWeights(path, output, { bits: 8, blockSize: 32 });
    expect(report).toEqual({
      nodes: [
        { name: 'one', opType: 'MatMul', became: 'MatMulNBits' },
        { name: 'two', opType: 'MatMul', became: 'MatMulNBits' },
      ],
      files: [output],
      bytesBefore: bytes.length,
      bytesAfter: statSync(output).size,
    });
    expect(report.bytesAfter).toBeLessThan(bytes.length / 2.5);
    expect(sqnr(await answer(output), expected)).toBeGreaterThan(40);
    await quantizeWeights(bytes, output, { bits: 4, blockSize: 16, isSymmetric: true }); // replaces what is there
    expect(statSync(output).size).toBeLessThan(report.bytesAfter);
    expect(sqnr(await answer(output), expected)).toBeGreaterThan(15);
    expect(new Uint8Array(readFileSync(path))).toEqual(bytes);
  });

  it('leaves nodes out, and takes URLs and external data', async () => {
    const report = await quantizeWeights(pathToFileURL(path), pathToFileURL(output), {
      nodesToExclude: ['two'],
      useExternalDataFormat: true,
    });
    expect(report.nodes[1]).toEqual({ name: 'two', opType: 'MatMul', reason: 'it is excluded' });
    expect(report.files).toEqual([output, `${output}.data`]);
    expect(await answer(output)).toHaveLength(16);
  });

  it('says how far it is, and what a listener throws ends nothing', async () => {
    const heard: number[] = [];
    await quantizeWeights(path, output, { onProgress: ({ done, total }) => heard.push(done, total) });
    expect(heard.slice(-2)).toEqual([2, 2]);
  });

  it('ends when its signal aborts, and leaves no file', async () => {
    const reason = new Error('enough');
    const early = quantizeWeights(path, output, { signal: AbortSignal.abort(reason) });
    await expect(early).rejects.toMatchObject({ code: 'ABORTED', name: 'AbortError', cause: reason });
    const controller = new AbortController();
    const large = model({
      nodes: [node('MatMul', ['x', 'w'], ['y'])],
      inputs: [f32('x', [1, 2048])],
      outputs: [f32('y', [1, 2048])],
      initializers: [{ name: 'w', type: 'float32', dims: [2048, 2048], data: new Float32Array(2048 * 2048).fill(1) }],
    });
    const late = quantizeWeights(large, output, { signal: controller.signal });
    controller.abort(reason);
    await expect(late).rejects.toMatchObject({ code: 'ABORTED', cause: reason });
    expect(readdirSync(folder)).toEqual(['model.onnx']);
  });

  it.each([
    [{ bits: 5 }, "Invalid quantizeWeights options: 'bits' must be one of 4, 8, got 5."],
    [{ blockSize: '32' }, "'blockSize' must be one of 16, 32, 64, 128, 256, got '32'."],
    [{ isSymmetric: 1 }, "'isSymmetric' must be a boolean, got 1."],
    [
      { opTypesToQuantize: ['Conv'] },
      "'opTypesToQuantize' must be an array of 'MatMul', 'Gemm', 'Gather', got 'Conv'.",
    ],
    [{ nodesToExclude: 'one' }, "'nodesToExclude' must be an array of strings, got 'one'."],
    [{ blocksize: 32 }, "there is no option 'blocksize'. Did you mean 'blockSize'?"],
    [{ signal: 1 }, "'signal' must be an AbortSignal"],
    [{ onProgress: 1 }, "'onProgress' must be a function"],
  ])('refuses %j', async (options, message) => {
    const error = await quantizeWeights(path, output, options as object).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(message) });
    expect(existsSync(output)).toBe(false);
  });

  it('refuses what is no model and no path', async () => {
    await expect(quantizeWeights(1 as never, output)).rejects.toThrow('The model must be a path');
    await expect(quantizeWeights(path, '')).rejects.toThrow(
      "The output must be the path of a file, or its URL, got ''.",
    );
  });

  it('tells of models that cannot be quantized, and of files that cannot be written', async () => {
    const failure = async (from: string, to: string, options = {}): Promise<unknown> =>
      quantizeWeights(from, to, options).catch((error: unknown) => error);
    const own = await failure(path, path);
    expect(own).toBeInstanceOf(InferenceError);
    expect(own).toMatchObject({ code: 'INVALID_ARGUMENT', path, message: expect.stringContaining('give the result another name') }); // prettier-ignore
    expect(await failure(path, output, { nodesToExclude: ['tow'] })).toMatchObject({ code: 'INVALID_ARGUMENT', node: 'tow' }); // prettier-ignore
    expect(await failure(path, join(folder, 'no', 'q.onnx'))).toMatchObject({ code: 'IO' });
    expect(await failure(join(folder, 'none.onnx'), output)).toMatchObject({ code: 'IO' });
    if (process.platform === 'linux') expect(await failure(path, '/dev/full')).toMatchObject({ code: 'IO', message: expect.stringContaining('No space left') }); // prettier-ignore
    expect(readdirSync(folder)).toEqual(['model.onnx']);
    expect(new Uint8Array(readFileSync(path))).toEqual(bytes);
    await quantizeWeights(path, output);
    expect(await failure(output, join(folder, 'again.onnx'))).toMatchObject({
      code: 'INVALID_MODEL',
      message: expect.stringContaining('The model is quantized already: 2 of its nodes are.'),
    });
  });
});

describe('quantizeDynamic', () => {
  it('writes a smaller model that gives nearly the same', async () => {
    const expected = await answer(path);
    const report = await quantizeDynamic(path, output, { perChannel: true });
    expect(report.nodes.map(({ became }) => became)).toEqual(['MatMulInteger', 'MatMulInteger']);
    expect(report.bytesAfter).toBeLessThan(bytes.length / 2.5);
    expect(sqnr(await answer(output), expected)).toBeGreaterThan(30);
    const unsigned = await quantizeDynamic(path, output, { weightType: 'QUInt8', nodesToQuantize: ['two'], extraOptions: { WeightSymmetric: false } }); // prettier-ignore
    expect(unsigned.nodes[0]!.reason).toBe('it is not among the nodes that are included');
    expect(sqnr(await answer(output), expected)).toBeGreaterThan(30);
  });

  it.each([
    [{ weightType: 'QInt4' }, "'weightType' must be one of 'QInt8', 'QUInt8', got 'QInt4'."],
    [{ EnableSubgraph: true }, "there is no option 'EnableSubgraph'."],
    [{ extraOptions: 1 }, "'extraOptions' must be an object"],
    [{ extraOptions: { EnableSubgraf: true } }, "there is no option 'EnableSubgraf'. Did you mean 'EnableSubgraph'?"],
    [{ extraOptions: { WeightSymmetric: 'yes' } }, "'WeightSymmetric' must be a boolean, got 'yes'."],
  ])('refuses %j', async (options, message) => {
    const error = await quantizeDynamic(path, output, options as object).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(message) });
    expect(existsSync(output)).toBe(false);
  });
});

describe('the entry point', () => {
  const consumer = join(root, 'consumer');
  mkdirSync(join(consumer, 'node_modules'), { recursive: true });
  symlinkSync(projectRoot, join(consumer, 'node_modules', 'infernode'), 'junction');
  const printed = async (name: string, text: string): Promise<unknown> => {
    writeFileSync(join(consumer, name), text);
    return JSON.parse((await start(process.execPath, [join(consumer, name)])).stdout);
  };

  it('is there for both module systems, with the errors of the main one', async () => {
    const body = `const error = await quantizeWeights('none.onnx', 'q.onnx').catch((e) => e);
      console.log(JSON.stringify([error instanceof InferenceError, error.code]));`;
    const esm = `import { quantizeWeights } from 'infernode/quantization'; import { InferenceError } from 'infernode'; ${body}`;
    expect(await printed('own.mjs', esm)).toEqual([true, 'IO']);
    const cjs = `const { quantizeWeights } = require('infernode/quantization'); const { InferenceError } = require('infernode');
      (async () => { ${body} })();`;
    expect(await printed('own.cjs', cjs)).toEqual([true, 'IO']);
  });

  it('is not loaded by the main one', async () => {
    const text = `require('infernode'); console.log(JSON.stringify(Object.keys(require.cache).some((f) => f.endsWith('quantization.cjs'))));`;
    expect(await printed('main.cjs', text)).toBe(false);
  });
});

describe('infernode quantize', () => {
  const command = join(projectRoot, 'dist', 'infernode.cjs');
  const infernode = (...args: string[]) =>
    spawnSync(process.execPath, [command, ...args], { cwd: folder, encoding: 'utf8' });

  it('writes the model and says what became of its nodes', () => {
    const args = ['quantize', 'weights', 'model.onnx', '--out', 'q.onnx', '--block-size', '32', '--is-symmetric', '--nodes-to-exclude', 'two']; // prettier-ignore
    expect(infernode(...args)).toMatchObject({
      status: 0,
      stderr: '',
      stdout: expect.stringMatching(/^wrote q\.onnx: .* MB became .* MB\n {2}1 MatMul became MatMulNBits\n {2}1 MatMul left: it is excluded\n$/), // prettier-ignore
    });
    const { nodes, files } = JSON.parse(infernode(...args, '--json').stdout);
    expect([nodes.length, files]).toEqual([2, ['q.onnx']]);
  });

  it.skipIf(process.platform === 'win32')('writes nothing where it is interrupted', async () => {
    const large = model({
      nodes: Array.from({ length: 40 }, (_, i) => node('MatMul', [i === 0 ? 'x' : `y${i - 1}`, `w${i}`], [`y${i}`])),
      inputs: [f32('x', [1, 1024])],
      outputs: [f32('y39', [1, 1024])],
      initializers: Array.from({ length: 40 }, (_, i) => ({ name: `w${i}`, type: 'float32' as const, dims: [1024, 1024], data: new Float32Array(1 << 20).fill(1) })), // prettier-ignore
    });
    writeFileSync(path, large);
    // The first turn of the event loop is that after the command has started the work.
    writeFileSync(join(folder, 'interrupt.cjs'), `setTimeout(() => process.kill(process.pid, 'SIGINT'), 0);`);
    const args = ['-r', join(folder, 'interrupt.cjs'), command, 'quantize', 'weights', 'model.onnx', '--out', 'q.onnx'];
    const ended = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' });
    expect(ended).toMatchObject({ status: 1, stderr: 'infernode: interrupted: nothing was written\n' });
    expect(readdirSync(folder).sort()).toEqual(['interrupt.cjs', 'model.onnx']);
  });

  it('quantizes dynamically, with extra options among the others', () => {
    const args = ['quantize', 'dynamic', 'model.onnx', '--out', 'q.onnx', '--enable-subgraph', '--weight-symmetric', 'false']; // prettier-ignore
    expect(infernode(...args).stdout).toContain('2 MatMul became MatMulInteger');
  });

  it.each([
    [['quantize', 'weights', 'model.onnx'], '--out FILE says where the result goes'],
    [['quantize', 'weights', 'model.onnx', '--out', 'model.onnx'], '--out model.onnx is the model'],
    [['quantize', 'weights', 'model.onnx', '--out', 'q.onnx', '--bits', '3'], "'bits' must be one of 4, 8, got '3'."],
    [['quantize', 'dynamic', 'model.onnx', '--out', 'q.onnx', '--mat-mul-const-b-only', '1'], "'MatMulConstBOnly' must be a boolean, got '1'."], // prettier-ignore
    [['quantize', 'weights', '--out', 'q.onnx'], 'quantize weights takes one model'],
    [['quantize', 'model.onnx'], "there is no command 'quantize'"],
  ])('ends with status 2 for a mistake: %j', (args, message) => {
    expect(infernode(...args)).toMatchObject({ status: 2, stderr: expect.stringContaining(message) });
    expect(readdirSync(folder)).toEqual(['model.onnx']);
  });
});

describe('docs/quantization.md', () => {
  const page = readFileSync(join(projectRoot, 'docs', 'quantization.md'), 'utf8');
  it.each([
    ['quantizeWeights', weightsTable as Table],
    ['quantizeDynamic', dynamicTable as Table],
    ['its extraOptions', dynamicExtraTable as Table],
    ['quantizeStatic', staticTable as Table],
    ['its extraOptions of the engine', staticExtraTable as Table],
    ['its extraOptions of the calibration', calibrationExtraTable as Table],
  ])('has the options of %s as the table has them', (_, table) => {
    expect(page).toContain(tableRows(table));
  });
});
