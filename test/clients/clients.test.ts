import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { projectRoot } from '../../scripts/lib/engine.mjs';
import { fetchModel } from '../../scripts/lib/models.mjs';
import { available } from '../fixtures/available.js';
import { readWav, resample } from '../models/pipelines/audio.mjs';
import { install, output, v4, xenova } from './install.js';

const scratch = mkdtempSync(join(tmpdir(), 'infernode-'));
afterAll(() => rmSync(scratch, { recursive: true }));

it('@huggingface/transformers computes with its helper models', async (context) => {
  const folder = await available(context, 'the client packages', () => install(v4));
  expect(await output(folder, 'transformers.mjs')).toEqual({
    matmul: [[10, 13], [28, 40]], // prettier-ignore
    slice: [[0], [3]],
    values: [[2, 1], [5, 4]], // prettier-ignore
    indices: [[2, 1], [2, 1]], // prettier-ignore
    enlarged: [[1, 1, 2, 2], [1, 1, 2, 2], [3, 3, 4, 4], [3, 3, 4, 4]], // prettier-ignore
    squeezed: [2],
  });
});

it('@gutenye/ocr-node reads a picture', async (context) => {
  const folder = await available(context, 'the client packages', () => install(v4));
  const example = join(projectRoot, 'examples', 'ocr');
  const text: string[] = await output(folder, 'ocr.mjs', { PICTURE: join(example, 'picture.png') });
  const expected = readFileSync(join(example, 'expected.txt'), 'utf8');
  // It joins boxes that stand in one line.
  expect(text.join(' ').split(' ')).toEqual(expected.trim().split(/\s/));
});

it('@xenova/transformers 2.17 writes down what is said, through the switch env.ownTensorData', async (context) => {
  const folder = await available(context, '@xenova/transformers and its model', () => install(xenova));
  const wav = await available(context, 'recorded speech', () => fetchModel('speech-front-center'));
  const { samples, rate } = readWav(wav);
  const path = join(scratch, 'speech.f32');
  writeFileSync(path, resample(samples, rate, 16000));
  expect(await output(folder, 'xenova.mjs', { SAMPLES: path, OWN: 'true' })).toEqual({ text: ' Front Center.' });
  await expect(output(folder, 'xenova.mjs', { SAMPLES: path, OWN: 'false' })).rejects.toThrow();
});
