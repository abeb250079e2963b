import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { peerSaturates } from '../../scripts/lib/peer.mjs';
import { available } from '../fixtures/available.js';
import { type Clients, install, installBoth, output, outputAsPeer, v3, v4, xenova } from './install.js';
import { spoken } from './speech.js';

const scratch = mkdtempSync(join(tmpdir(), 'infernode-'));
afterAll(() => rmSync(scratch, { recursive: true }));

it.for<[string, Clients]>([
  ['4.3', v4],
  ['3.8', v3],
])('Whisper of @huggingface/transformers %s writes down what is said, with times and as it goes', async ([, clients], context) => {
  await available(context, 'transformers.js and Whisper', () => installBoth(clients));
  const names = ['speech-front-center', 'speech-rear-left', 'speech-side-right'];
  const SAMPLES = await available(context, 'recorded speech', () => spoken(scratch, names));
  // Times are told by steps of 0.02 s. Where the peer's sums of int8 weights saturate, it writes other punctuation.
  const answers = peerSaturates
    ? await output((await installBoth(clients))[0], 'whisper.mjs', { SAMPLES })
    : await outputAsPeer(clients, 'whisper.mjs', { SAMPLES }, 0.021);
  const { text, chunks, streamed } = answers;
  expect(text).toMatch(/front center.*(rear|real) left.*side right/i);
  expect(chunks.map((chunk: any) => chunk.text).join('')).toBe(text);
  const times = chunks.flatMap((chunk: any) => chunk.timestamp);
  expect(times).toEqual([...times].sort((a, b) => a - b));
  expect(times.at(-1)).toBeGreaterThan(3);
  expect(streamed.text.trim()).toBe(text.trim());
  expect(streamed.starts).toEqual(chunks.map((chunk: any) => chunk.timestamp[0]));
  expect(streamed.finished).toBe(1);
});

it('@xenova/transformers 2.17 writes down what is said, through the switch env.ownTensorData', async (context) => {
  const folder = await available(context, '@xenova/transformers and its model', () => install(xenova));
  const SAMPLES = await available(context, 'recorded speech', () => spoken(scratch, ['speech-front-center']));
  expect(await output(folder, 'xenova.mjs', { SAMPLES, OWN: 'true' })).toEqual({ text: ' Front Center.' });
  await expect(output(folder, 'xenova.mjs', { SAMPLES, OWN: 'false' })).rejects.toThrow();
});
