// What `npm run verify:prebuilds` runs on each platform, under an emulator too: models of a few kinds, whose answers are
// compared with those of the checkout's own build. Node.js alone starts it: it is bundled into one file.
//
// usage: node program.cjs <folder of the package> <file for the report> [<file of a network with one input>...]
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import type { InferenceSession, Tensor } from 'onnxruntime-common';
import { model, node, oneNode, type TensorInfo } from '../fixtures/onnx-writer.js';

const [, , folder, report, ...networks] = process.argv as [string, string, string, string, ...string[]];
// eslint-disable-next-line @typescript-eslint/no-require-imports -- the package under test, known only now
const engine = require(join(folder, 'dist', 'index.cjs')) as {
  InferenceSession: typeof InferenceSession;
  Tensor: typeof Tensor;
};

const floats = (name: string, shape: number[]): TensorInfo => ({ name, type: 'float32', shape });
const size = (shape: readonly number[]): number => shape.reduce((product, dim) => product * dim, 1);

/** Numbers between -1 and 1 that are the same everywhere. */
function noise(count: number, seed: number): Float32Array {
  let state = seed;
  return Float32Array.from({ length: count }, () => (state = (state * 16807) % 2147483647) / 1073741823.5 - 1);
}

/** A product by weights, or by those of a file beside the model. */
const productOf = (weights: Float32Array, external?: string): Uint8Array =>
  model({
    nodes: [node('MatMul', ['x', 'w'], ['y'])],
    inputs: [floats('x', [5, 64])],
    outputs: [floats('y', [5, 96])],
    initializers: [
      external === undefined
        ? { name: 'w', type: 'float32', dims: [64, 96], data: weights }
        : { name: 'w', type: 'float32', dims: [64, 96], data: [], external: { location: external } },
    ],
  });

const convolution = (channels: number, side: number, kernel: number): Uint8Array =>
  model({
    nodes: [
      node('Conv', ['x', 'w'], ['c'], { attributes: { pads: [1n, 1n, 1n, 1n], kernel_shape: [BigInt(kernel), BigInt(kernel)] } }),
      node('Relu', ['c'], ['y']),
    ],
    inputs: [floats('x', [1, channels, side, side])],
    outputs: [floats('y', [1, channels, side + 3 - kernel, side + 3 - kernel])],
    initializers: [
      { name: 'w', type: 'float32', dims: [channels, channels, kernel, kernel], data: noise(channels * channels * kernel * kernel, 5) },
    ],
  });

/** By name: the model, and the shape of its input x. */
const models: Record<string, [Uint8Array, number[]]> = {
  product: [
    model({
      nodes: [node('MatMul', ['x', 'w'], ['y'])],
      inputs: [floats('x', [37, 65])],
      outputs: [floats('y', [37, 129])],
      initializers: [{ name: 'w', type: 'float32', dims: [65, 129], data: noise(65 * 129, 7) }],
    }),
    [37, 65],
  ],
  'convolution 1 x 1': [convolution(12, 9, 1), [1, 12, 9, 9]],
  'convolution 3 x 3': [convolution(32, 28, 3), [1, 32, 28, 28]],
  'convolution 5 x 5': [convolution(6, 17, 5), [1, 6, 17, 17]],
  'integer product': [
    model({
      nodes: [
        node('DynamicQuantizeLinear', ['x'], ['q', 'scale', 'zero']),
        node('Transpose', ['q'], ['t']),
        node('MatMulInteger', ['q', 't', 'zero', 'zero'], ['i']),
        node('Cast', ['i'], ['y'], { attributes: { to: 1n } }),
      ],
      inputs: [floats('x', [19, 70])],
      outputs: [floats('y', [19, 19])],
    }),
    [19, 70],
  ],
  'half precision': [
    model({
      nodes: [
        node('Cast', ['x'], ['h'], { attributes: { to: 10n } }),
        node('Transpose', ['h'], ['t']),
        node('MatMul', ['h', 't'], ['p']),
        node('Cast', ['p'], ['y'], { attributes: { to: 1n } }),
      ],
      inputs: [floats('x', [21, 40])],
      outputs: [floats('y', [21, 21])],
    }),
    [21, 40],
  ],
  functions: [
    model({
      nodes: [
        node('Softmax', ['x'], ['s'], { attributes: { axis: -1n } }),
        node('Erf', ['x'], ['e']),
        node('Tanh', ['x'], ['t']),
        node('Sigmoid', ['x'], ['g']),
        node('Exp', ['x'], ['p']),
        node('Sum', ['s', 'e', 't', 'g', 'p'], ['y']),
      ],
      inputs: [floats('x', [11, 53])],
      outputs: [floats('y', [11, 53])],
    }),
    [11, 53],
  ],
  reduction: [oneNode('GlobalAveragePool', [floats('x', [2, 5, 13, 7])], [floats('y', [2, 5, 1, 1])]), [2, 5, 13, 7]],
  window: [
    oneNode('MaxPool', [floats('x', [1, 3, 14, 14])], [floats('y', [1, 3, 7, 7])], {
      attributes: { kernel_shape: [2n, 2n], strides: [2n, 2n] },
    }),
    [1, 3, 14, 14],
  ],
};

async function answers(): Promise<Record<string, number[]>> {
  const found: Record<string, number[]> = {};
  for (const [name, [bytes, shape]] of Object.entries(models)) {
    const session = await engine.InferenceSession.create(bytes);
    const x = new engine.Tensor('float32', noise(size(shape), 3), shape);
    const [first, second] = await Promise.all([session.run({ x }), session.run({ x })]);
    found[name] = [...(first.y!.data as Float32Array)];
    if (found[name].some((value, i) => value !== second.y!.data[i])) throw new Error(`${name}: two runs differ`);
    await session.release();
  }
  return found;
}

/** What networks say of noise; a dimension without a number is 1. */
async function answersOfNetworks(): Promise<Record<string, number[]>> {
  const found: Record<string, number[]> = {};
  for (const path of networks) {
    const session = await engine.InferenceSession.create(path);
    const [input] = session.inputMetadata;
    if (!input?.isTensor) throw new Error(`${path} has no tensor for its input`);
    const shape = input.shape.map((dim) => (typeof dim === 'number' ? dim : 1));
    const numbers = noise(size(shape), 3);
    const x =
      input.type === 'int32'
        ? new engine.Tensor('int32', Int32Array.from(numbers, (value) => Math.floor(128 * (value + 1))), shape)
        : new engine.Tensor('float32', numbers, shape);
    const outputs = await session.run({ [input.name]: x });
    for (const [name, value] of Object.entries(outputs))
      found[`${basename(dirname(path))}: ${name}`] = [...(value.data as Float32Array)];
    await session.release();
  }
  return found;
}

/** Folders that systems have their difficulties with. */
const folders = ['plain', 'with spaces', 'Gr\u00f6\u00dfe \u6a21\u578b \u{1f642}', ['a', 'b', 'c'].map((letter) => letter.repeat(110)).join('/')];

/** A model with its weights beside it, its cache and its optimized copy, in such folders: read, written, read again. */
async function answersOfFiles(): Promise<Record<string, number[]>> {
  const found: Record<string, number[]> = {};
  const top = mkdtempSync(join(tmpdir(), 'infernode files '));
  for (const [i, name] of folders.entries()) {
    const place = join(top, name);
    mkdirSync(place, { recursive: true });
    const [path, saved] = [join(place, 'model.onnx'), join(place, 'saved.onnx')];
    const weights = noise(64 * 96, 11);
    // wine does not tell where a file lies whose path is longer than 260 characters, which a load asks of external data.
    const external = process.platform === 'win32' && path.length > 260 ? undefined : 'Gewichte f\u00fcr w.bin';
    writeFileSync(path, productOf(weights, external));
    if (external !== undefined) writeFileSync(join(place, external), weights);
    const cached = { modelCacheDir: join(place, 'cache') };
    const x = new engine.Tensor('float32', noise(5 * 64, 3), [5, 64]);
    const loads: [string, InferenceSession.SessionOptions & { modelCacheDir?: string }][] = [
      [path, { ...cached, optimizedModelFilePath: saved }],
      [path, cached],
      [saved, {}],
    ];
    for (const [file, options] of loads) {
      const session = await engine.InferenceSession.create(file, options);
      const { y } = await session.run({ x });
      (found[`files in folder ${i}`] ??= []).push(...(y!.data as Float32Array));
      await session.release();
    }
    if (readdirSync(cached.modelCacheDir).length === 0) throw new Error(`nothing is cached in folder ${i}`);
  }
  rmSync(top, { recursive: true, force: true });
  return found;
}

/** A convolution's answer, on more threads than this machine may have. */
async function answerOfThreads(): Promise<number[]> {
  const session = await engine.InferenceSession.create(convolution(48, 40, 3), { intraOpNumThreads: 5 });
  const x = new engine.Tensor('float32', noise(48 * 1600, 3), [1, 48, 40, 40]);
  const { y } = await session.run({ x });
  await session.release();
  return [...(y!.data as Float32Array)];
}

/** The same in worker threads, two at once, that end while the engine's own go on. */
const answersOfWorkers = (): Promise<number[][]> =>
  Promise.all(
    [0, 1].map(
      () =>
        new Promise<number[]>((resolve, reject) => {
          const worker = new Worker(__filename, { argv: process.argv.slice(2) });
          worker.once('message', resolve);
          worker.once('error', reject);
        }),
    ),
  );

/** What a damaged model is refused with. */
const refusal = (): Promise<unknown> =>
  engine.InferenceSession.create(Uint8Array.of(1, 2, 3)).then(
    () => 'nothing',
    (error: { code?: unknown }) => error.code,
  );

const write = (said: object): void => writeFileSync(report, JSON.stringify(said));
async function everything(): Promise<object> {
  const [first, second] = await answersOfWorkers();
  const surroundings = { threads: await answerOfThreads(), 'worker 1': first, 'worker 2': second };
  return {
    platform: `${process.platform}-${process.arch}`,
    answers: { ...(await answers()), ...(await answersOfFiles()), ...surroundings },
    networks: await answersOfNetworks(),
    refusal: await refusal(),
  };
}
if (isMainThread) everything().then(write, (error: unknown) => write({ error: String(error) }));
else void answerOfThreads().then((answer) => parentPort!.postMessage(answer));
