// Programs of the documentation that need other packages: the rest run in test/unit/snippets.test.ts.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
// @ts-expect-error it has no types
import { PNG } from 'pngjs';
import { expect, it } from 'vitest';
import { projectRoot } from '../../scripts/lib/engine.mjs';
import { run } from '../../scripts/lib/run.mjs';
import { available } from '../fixtures/available.js';
import { ours } from '../fixtures/engine.js';
import { model, node } from '../fixtures/onnx-writer.js';
import { install } from './install.js';

const clients = { dependencies: { sharp: '0.34.5' } };

/** The program of a page that needs `what`. */
function program(page: string, what: string): string {
  const text = readFileSync(join(projectRoot, 'docs', page), 'utf8');
  const found = new RegExp(`^\`\`\`js[^\\n]* not run: needs ${what}\\n([^]*?)^\`\`\`$`, 'm').exec(text);
  return found?.[1] ?? expect.fail(`${page} has no program that needs ${what}`);
}

/** What it prints in a folder of its own within `folder`, whose packages it finds. */
async function printed(folder: string, text: string, prepare: (place: string) => void): Promise<string> {
  const place = mkdtempSync(join(folder, 'page-'));
  try {
    prepare(place);
    writeFileSync(join(place, 'program.mjs'), text);
    return await run(process.execPath, ['program.mjs'], { cwd: place });
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

it.runIf(ours)('docs/images.md makes a tensor of a picture', async (context) => {
  const folder = await available(context, 'sharp', () => install(clients));
  const text = `import { Tensor } from 'infernode';
    ${program('images.md', 'sharp and a picture')}
    const channels = [0, 1, 2].map((c) => [...new Set(x.data.subarray(c * 224 * 224, (c + 1) * 224 * 224))]);
    console.log(JSON.stringify([x.type, x.dims, ...channels]));`;
  const picture = new PNG({ width: 300, height: 200 });
  for (let i = 0; i < picture.data.length; i += 4) picture.data.set([255, 0, 51, 255], i);
  const told = await printed(folder, text, (place) => writeFileSync(join(place, 'photo.jpg'), PNG.sync.write(picture)));
  const [type, dims, ...channels] = JSON.parse(told);
  expect([type, dims]).toEqual(['float32', [1, 3, 224, 224]]);
  const wanted = [(1 - 0.485) / 0.229, (0 - 0.456) / 0.224, (0.2 - 0.406) / 0.225];
  channels.forEach((values: number[], c: number) => {
    for (const value of values) expect(value).toBeCloseTo(wanted[c]!, 5);
  });
});

it.runIf(ours)('docs/migrating.md holds the answers of both engines against each other', async (context) => {
  const folder = await available(context, 'onnxruntime-node', () => install(clients, 'peer'));
  const means = model({
    nodes: [node('GlobalAveragePool', ['input'], ['means']), node('Flatten', ['means'], ['output'])],
    inputs: [{ name: 'input', type: 'float32', shape: ['N', 3, 224, 224] }],
    outputs: [{ name: 'output', type: 'float32', shape: ['N', 3] }],
  });
  const text = program('migrating.md', 'onnxruntime-node');
  const told = await printed(folder, text, (place) => writeFileSync(join(place, 'model.onnx'), means));
  expect(told).toMatch(/^\d/);
  expect(Number(told)).toBeLessThan(1e-6);
});
