import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { build as esbuild } from 'esbuild';
import { build as vite } from 'vite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { projectRoot } from '../../scripts/lib/engine.mjs';
import { run } from '../../scripts/lib/run.mjs';
import { available } from '../fixtures/available.js';
import { ours } from '../fixtures/engine.js';
import { matmul } from '../fixtures/models.js';
import { install } from './install.js';
import { packed } from './packed.js';

const tools = () =>
  install({
    dependencies: { '@arethetypeswrong/cli': '0.18.5', publint: '0.3.25', rollup: '4.68.8', webpack: '5.113.0' },
  });
const tool = (folder: string, path: string): string => join(folder, 'node_modules', path);

/** A project whose programs are bundled. */
const folder = mkdtempSync(join(tmpdir(), 'infernode-bundles-'));
const source = (name: string): string => join(folder, name);
beforeAll(() => {
  const installed = (...names: string[]): string => join(folder, 'node_modules', ...names);
  const binary = join('prebuilds', `${process.platform}-${process.arch}`, 'infernode.node');
  cpSync(join(projectRoot, 'dist'), installed('infernode', 'dist'), { recursive: true });
  cpSync(join(projectRoot, 'package.json'), installed('infernode', 'package.json'));
  cpSync(join(projectRoot, 'build', 'Release', 'infernode.node'), installed('infernode', binary));
  for (const name of ['onnxruntime-common', 'node-gyp-build'])
    symlinkSync(join(projectRoot, 'node_modules', name), installed(name), 'junction');
  const names = 'InferenceSession, Tensor, createBatcher, env';
  const body = `
    const bytes = Buffer.from('${Buffer.from(matmul()).toString('base64')}', 'base64');
    const square = () => new Tensor('float32', new Float32Array(4).fill(1), [2, 2]);
    InferenceSession.create(bytes)
      .then((session) => session.run({ a: square(), b: square() }))
      .then(async ({ c }) => {
        const { size } = await Tensor.fromImage({ data: new Uint8Array(12), width: 2, height: 2 }); // loads what is loaded later
        console.log('answer', c.data[0], typeof createBatcher, env.logLevel, size);
      }).catch(
        ({ code, message }) => console.log(code, message));`;
  writeFileSync(source('program.cjs'), `const { ${names} } = require('infernode');${body}`);
  writeFileSync(source('program.mjs'), `import { ${names} } from 'infernode';${body}`);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const start = (path: string): Promise<string> => run(process.execPath, [path], { cwd: dirname(path) });
const answer = 'answer 2 function warning 12\n';

/** webpack from its command line would be a package more. */
async function webpack(place: string, config: object): Promise<void> {
  const program = `
    const webpack = require(process.argv[1]);
    webpack(JSON.parse(process.argv[2]), (error, stats) => {
      if (error ?? stats.hasErrors()) throw error ?? new Error(stats.toString({ all: false, errors: true }));
    });`;
  const all = { mode: 'production', target: 'node', context: folder, ...config };
  await run(process.execPath, ['-e', program, tool(place, 'webpack'), JSON.stringify(all)]);
}

async function rollup(place: string, input: string, file: string, external: readonly string[]): Promise<void> {
  const format = file.endsWith('.mjs') ? 'es' : 'cjs';
  const options = ['--input', source(input), '--file', join(folder, file), '--format', format];
  await run(process.execPath, [tool(place, 'rollup/dist/bin/rollup'), ...options, '--external', external.join()]);
}

describe.runIf(ours)('a program bundled as docs/bundlers.md says', () => {
  it.each(['program.cjs', 'program.mjs'])('by esbuild runs: %s', async (name) => {
    const outfile = join(folder, 'esbuild', name);
    const format = name.endsWith('.mjs') ? 'esm' : 'cjs';
    await esbuild({ entryPoints: [source(name)], outfile, bundle: true, platform: 'node', format, external: ['infernode'] }); // prettier-ignore
    expect(await start(outfile)).toBe(answer);
  });

  it.for(['program.cjs', 'program.mjs'])('by webpack runs: %s', async (name, context) => {
    const place = await available(context, 'webpack', tools);
    const output = { path: join(folder, 'webpack', name), filename: 'main.cjs' };
    await webpack(place, { entry: source(name), output, externals: { infernode: 'commonjs infernode' } });
    expect(await start(join(output.path, 'main.cjs'))).toBe(answer);
  });

  it('by webpack as an ES module runs', async (context) => {
    const place = await available(context, 'webpack', tools);
    const output = { path: join(folder, 'webpack', 'module'), filename: 'main.mjs', module: true };
    const experiments = { outputModule: true };
    await webpack(place, { entry: source('program.mjs'), output, experiments, externals: { infernode: 'module infernode' } }); // prettier-ignore
    expect(await start(join(output.path, 'main.mjs'))).toBe(answer);
  });

  it.for(['rollup/main.mjs', 'rollup/main.cjs'])('by Rollup runs: %s', async (file, context) => {
    await rollup(await available(context, 'Rollup', tools), 'program.mjs', file, ['infernode']);
    expect(await start(join(folder, file))).toBe(answer);
  });

  it('by Vite for a server runs, with no option at all', async () => {
    const outDir = join(folder, 'vite');
    await vite({ root: folder, logLevel: 'silent', configFile: false, build: { ssr: source('program.mjs'), outDir } });
    expect(await start(join(outDir, 'program.mjs'))).toBe(answer);
  });
});

describe.runIf(ours)('a program that webpack bundled with the package in it', () => {
  it('says what to do, and takes a binary that lies beside it', async (context) => {
    const place = await available(context, 'webpack', tools);
    const output = { path: join(folder, 'webpack', 'whole'), filename: 'main.cjs' };
    await webpack(place, { entry: source('program.cjs'), output });
    expect(await start(join(output.path, 'main.cjs'))).toMatch(/^NO_BINARY [^]*bundled[^]*docs\/bundlers\.md/);
    cpSync(join(projectRoot, 'build', 'Release', 'infernode.node'), join(output.path, 'infernode.node'));
    expect(await start(join(output.path, 'main.cjs'))).toBe(answer);
  });
});

describe('the archive that is published', () => {
  it('passes publint', async (context) => {
    const place = await available(context, 'publint', tools);
    const archive = await packed(projectRoot, folder);
    const printed = await run(process.execPath, [tool(place, 'publint/src/cli.js'), 'run', archive, '--strict']);
    expect(printed).toContain('All good!');
  });

  it('passes arethetypeswrong: types for import and for require, found by every resolution', async (context) => {
    const place = await available(context, 'arethetypeswrong', tools);
    const archive = await packed(projectRoot, folder);
    const printed = await run(process.execPath, [tool(place, '@arethetypeswrong/cli/dist/index.js'), archive, '--format', 'json']); // prettier-ignore
    expect(JSON.parse(printed)).toMatchObject({ analysis: { packageName: 'infernode', problems: [] }, problems: {} });
  });
});
