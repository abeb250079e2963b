// Models whose weights stand in a file of their own. What the suite runs is small; INFERNODE_LARGE_MODELS=1 adds one of
// more than 2 GB, which no protobuf file holds (about 6 GB of disk and as much memory).
import { closeSync, ftruncateSync, mkdtempSync, openSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { peerFolder } from '../../scripts/lib/peer.mjs';
import { available } from '../fixtures/available.js';
import { failureOf, ort, ours } from '../fixtures/engine.js';
import { model, node } from '../fixtures/onnx-writer.js';
import { type Values, withEngine } from './agreement.js';

const minutes = 60_000;
const layers = 9;

/** Row i of each matrix has one element, in this column, and what it is: powers of two, so that sums are exact. */
const column = (i: number, width: number) => (5 * i + 1) % width;
const factor = (i: number, layer: number) => 2 ** (((i + layer) % 3) - 1);

/** A chain of products with matrices of `width` columns, mostly holes in a file that holds them one behind another. */
function write(folder: string, width: number): string {
  const bytes = width * width * 4;
  const file = openSync(join(folder, 'weights.bin'), 'w');
  ftruncateSync(file, layers * bytes);
  for (let layer = 0; layer < layers; layer++) {
    for (let i = 0; i < width; i++) {
      const position = layer * bytes + (i * width + column(i, width)) * 4;
      writeSync(file, Float32Array.of(factor(i, layer)), 0, 4, position);
    }
  }
  closeSync(file);
  const numbers = Array.from({ length: layers }, (_, layer) => layer);
  const path = join(folder, 'model.onnx');
  writeFileSync(
    path,
    model({
      nodes: numbers.flatMap((layer) => [
        node('MatMul', [`v${layer}`, `w${layer}`], [`p${layer}`]),
        node('Relu', [`p${layer}`], [`v${layer + 1}`]),
      ]),
      inputs: [{ name: 'v0', type: 'float32', shape: ['N', width] }],
      outputs: [{ name: `v${layers}`, type: 'float32', shape: ['N', width] }],
      initializers: numbers.map((layer) => ({
        name: `w${layer}`,
        type: 'float32' as const,
        dims: [width, width],
        data: [],
        external: { location: 'weights.bin', offset: layer * bytes, length: bytes },
      })),
    }),
  );
  return path;
}

const input = (width: number) => Float32Array.from({ length: width }, (_, i) => (i % 7) + 1);

function expected(width: number): Float32Array {
  let values = input(width);
  for (let layer = 0; layer < layers; layer++) {
    const next = new Float32Array(width);
    for (let i = 0; i < width; i++) next[column(i, width)]! += values[i]! * factor(i, layer);
    values = next;
  }
  return values;
}

/** Opens a model, asks it, and lets it go. */
async function answer(path: string, width: number, options: object = {}): Promise<ArrayLike<number>> {
  const session = await ort.InferenceSession.create(path, { logSeverityLevel: 3, ...options });
  try {
    const results = await session.run({ v0: new ort.Tensor('float32', input(width), [1, width]) });
    return results[`v${layers}`].data;
  } finally {
    await session.release();
  }
}

async function peerAnswer(path: string, width: number): Promise<ArrayLike<number>> {
  return withEngine('peer', {}, async (peer) => {
    const { id } = await peer.create(path, { logSeverityLevel: 3 });
    const feeds: Values = { v0: { type: 'float32', dims: [1, width], data: input(width) } };
    return ((await peer.run(id, feeds)) as Values)[`v${layers}`]!.data as ArrayLike<number>;
  });
}

async function inFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'infernode-'));
  try {
    await body(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe('a model with external data', () => {
  const beside = {
    'session.optimized_model_external_initializers_file_name': 'saved.bin',
    'session.optimized_model_external_initializers_min_size_in_bytes': '1024',
  };
  it.for(['disabled', 'basic', 'all'])(
    'is saved at level %s with its weights beside it, and onnxruntime-node answers alike',
    async (graphOptimizationLevel, context) => {
      await available(context, 'onnxruntime-node', peerFolder);
      await inFolder(async (folder) => {
        const width = 64;
        const path = write(folder, width);
        const optimizedModelFilePath = join(folder, 'saved.onnx');
        const options = { graphOptimizationLevel, optimizedModelFilePath, extra: beside };
        const given = await answer(path, width, options);
        expect(Array.from(given)).toEqual(Array.from(expected(width)));
        expect(statSync(join(folder, 'saved.bin')).size).toBe(layers * width * width * 4);
        expect(statSync(optimizedModelFilePath).size).toBeLessThan(10_000);
        rmSync(join(folder, 'weights.bin'));
        expect(Array.from(await answer(optimizedModelFilePath, width))).toEqual(Array.from(expected(width)));
        expect(Array.from(await peerAnswer(optimizedModelFilePath, width))).toEqual(Array.from(expected(width)));
      });
    },
  );

  it.runIf(ours && process.env['INFERNODE_LARGE_MODELS'])(
    'of more than 2 GB is saved with its weights beside it without being told to',
    { timeout: 20 * minutes },
    async (context) => {
      await available(context, 'onnxruntime-node', peerFolder);
      await inFolder(async (folder) => {
        const width = 8192;
        const path = write(folder, width);
        const inOrtFormat = { optimizedModelFilePath: join(folder, 'saved.ort') };
        const failure = await failureOf(() => ort.InferenceSession.create(path, inOrtFormat));
        expect(failure.message).toMatch(/2 GB/);
        const optimizedModelFilePath = join(folder, 'saved.onnx');
        const given = await answer(path, width, { optimizedModelFilePath });
        expect(Array.from(given)).toEqual(Array.from(expected(width)));
        expect(statSync(`${optimizedModelFilePath}.data`).size).toBe(layers * width * width * 4);
        expect(statSync(optimizedModelFilePath).size).toBeLessThan(10_000);
        rmSync(join(folder, 'weights.bin'));
        expect(Array.from(await answer(optimizedModelFilePath, width))).toEqual(Array.from(expected(width)));
        expect(Array.from(await peerAnswer(optimizedModelFilePath, width))).toEqual(Array.from(expected(width)));
      });
    },
  );
});
