import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'; // prettier-ignore
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { projectRoot } from '../../scripts/lib/engine.mjs';
import { available } from '../fixtures/available.js';
import { ours } from '../fixtures/engine.js';
import { matmul } from '../fixtures/models.js';
import { oneNode } from '../fixtures/onnx-writer.js';
import { install } from './install.js';
import { packAll, packed } from './packed.js';

// What a user does with the archives that npm would fetch, on a machine with Node.js and npm alone, where every way to
// the network is a dead end.
const MB = 2 ** 20;
const folder = mkdtempSync(join(tmpdir(), 'infernode-packed-'));
const nowhere = 'http://127.0.0.1:9';
let archives: Record<string, string>;
let env: NodeJS.ProcessEnv;
beforeAll(async () => {
  if (!ours) return;
  archives = await packAll(folder);
  const programs = join(folder, 'bin');
  mkdirSync(programs);
  symlinkSync(process.execPath, join(programs, 'node'));
  const npm = ['../lib/node_modules/npm', 'node_modules/npm', '../share/nodejs/npm'].map((path) =>
    join(dirname(realpathSync(process.execPath)), path, 'bin', 'npm-cli.js'),
  );
  symlinkSync(npm.find((path) => existsSync(path))!, join(programs, 'npm'));
  const proxies = { HTTP_PROXY: nowhere, HTTPS_PROXY: nowhere, http_proxy: nowhere, https_proxy: nowhere };
  env = {
    ...proxies,
    PATH: programs,
    HOME: join(folder, 'home'),
    npm_config_registry: nowhere,
    npm_config_fetch_retries: '0',
    npm_config_loglevel: 'error', // newer npm warns of onnxruntime-common's own `prepare`, which only its authors run
    YARN_ENABLE_TELEMETRY: '0',
    YARN_ENABLE_NETWORK: '0',
    YARN_ENABLE_GLOBAL_CACHE: '0',
    MODEL: Buffer.from(matmul()).toString('base64'),
  };
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function start(cwd: string, program: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, env, encoding: 'utf8' });
  expect({ status, stderr }, stdout).toEqual({ status: 0, stderr: '' });
  return stdout;
}

const body = `
  const session = await InferenceSession.create(Buffer.from(process.env.MODEL, 'base64'));
  const square = new Tensor('float32', new Float32Array(4).fill(1), [2, 2]);
  const { c } = await session.run({ a: square, b: square });
  console.log('answer', c.data[0], listSupportedBackends()[0].name, typeof createBatcher);
  await session.release();`;
const names = 'InferenceSession, Tensor, listSupportedBackends, createBatcher';
const answer = 'answer 2 cpu function\n';

/** A folder with programs, and a package.json in which every dependency is an archive. */
function project(name: string, manifest: (files: Record<string, string>) => object): string {
  const place = join(folder, name);
  mkdirSync(place);
  const files = Object.fromEntries(Object.entries(archives).map(([key, path]) => [key, `file:${path}`]));
  writeFileSync(join(place, 'package.json'), JSON.stringify({ private: true, name, ...manifest(files) }));
  writeFileSync(join(place, 'program.cjs'), `const { ${names} } = require('infernode'); (async () => {${body}})();`);
  writeFileSync(join(place, 'program.mjs'), `import { ${names} } from 'infernode';${body}`);
  return place;
}

const sizeOf = (path: string): number =>
  lstatSync(path).isDirectory()
    ? readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0)
    : lstatSync(path).size;

describe.runIf(ours)('the packed package', () => {
  it('installs by npm without network, scripts, compiler or Python, and runs', () => {
    const place = project('by-npm', (dependencies) => ({ dependencies }));
    start(place, 'npm', 'install', '--no-audit', '--no-fund', '--no-update-notifier');
    const { packages } = JSON.parse(readFileSync(join(place, 'package-lock.json'), 'utf8'));
    expect(Object.keys(packages).sort()).toEqual(['', ...Object.keys(archives).map((name) => `node_modules/${name}`).sort()]); // prettier-ignore
    for (const [name, entry] of Object.entries<any>(packages)) expect(entry.hasInstallScript, name).toBeUndefined();
    for (const program of ['program.cjs', 'program.mjs']) expect(start(place, 'node', program)).toBe(answer);
    expect(start(place, 'node', join('node_modules', '.bin', 'infernode'), '--help')).toMatch(/^usage: infernode COMMAND MODEL/);
  });

  it("runs the README's ten lines", () => {
    const place = join(folder, 'by-npm');
    const [, lines] = /```js\n([^]*?)```/.exec(readFileSync(join(projectRoot, 'README.md'), 'utf8'))!;
    const picture = (name: string) => ({ name, type: 'float32', shape: [1, 3, 224, 224] }) as const;
    writeFileSync(join(place, 'model.onnx'), oneNode('Relu', [picture('in')], [picture('out')]));
    writeFileSync(join(place, 'ten.mjs'), lines!);
    expect(start(place, 'node', 'ten.mjs')).toMatch(/name: 'in'[^]*name: 'out'[^]*Float32Array\(150528\)/);
  });

  it.for(['program.cjs', 'program.mjs'])('is traced whole: what @vercel/nft lists for %s runs by itself', async (program, context) => {
    const tools = await available(context, '@vercel/nft', () => install({ dependencies: { '@vercel/nft': '1.11.5' } }));
    const { nodeFileTrace } = createRequire(join(tools, 'user.js'))('@vercel/nft');
    const place = join(folder, 'by-npm');
    const { fileList } = await nodeFileTrace([join(place, program)], { base: place });
    const elsewhere = join(folder, `traced-${program}`);
    for (const path of fileList) cpSync(join(place, path), join(elsewhere, path));
    expect(start(elsewhere, 'node', program)).toBe(answer);
  });

  it('takes less than 20 MB with the binary of one platform', () => {
    const place = join(folder, 'by-npm', 'node_modules');
    expect(sizeOf(join(place, 'infernode')) + sizeOf(join(place, 'node-gyp-build'))).toBeLessThan(20 * MB);
    const binaries = readdirSync(place, { recursive: true, encoding: 'utf8' }).filter((name) => /\.(node|so.*|dylib|dll)$/.test(name)); // prettier-ignore
    expect(binaries).toEqual([join('infernode', 'prebuilds', `${process.platform}-${process.arch}`, 'infernode.node')]);
  });

  it('names no platform that it refuses, so that no install fails where there is no binary', () => {
    const manifest = JSON.parse(readFileSync(join(folder, 'by-npm', 'node_modules', 'infernode', 'package.json'), 'utf8'));
    expect(manifest).not.toHaveProperty('os');
    expect(manifest).not.toHaveProperty('cpu');
    expect(manifest).not.toHaveProperty('libc');
  });
});

const tools = () => install({ dependencies: { pnpm: '9.15.9', '@yarnpkg/cli-dist': '4.9.1' } });

describe.runIf(ours)('another package manager', () => {
  it('pnpm, whose packages see nothing but their own dependencies, installs it', async (context) => {
    const pnpm = join(await available(context, 'pnpm', tools), 'node_modules', 'pnpm', 'bin', 'pnpm.cjs');
    const place = project('by-pnpm', ({ infernode, ...overrides }) => ({ dependencies: { infernode }, pnpm: { overrides } })); // prettier-ignore
    start(place, 'node', pnpm, 'install', '--offline', '--store-dir', join(folder, 'store'));
    expect(readdirSync(join(place, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual(['infernode']);
    for (const program of ['program.cjs', 'program.mjs']) expect(start(place, 'node', program)).toBe(answer);
  });

  it("Yarn's Plug'n'Play installs it", async (context) => {
    const yarn = join(await available(context, 'Yarn', tools), 'node_modules', '@yarnpkg', 'cli-dist', 'bin', 'yarn.js');
    const place = project('by-yarn', ({ infernode, ...resolutions }) => ({ dependencies: { infernode }, resolutions }));
    writeFileSync(join(place, 'yarn.lock'), '');
    start(place, 'node', yarn, 'install');
    expect(existsSync(join(place, 'node_modules'))).toBe(false);
    for (const program of ['program.cjs', 'program.mjs']) expect(start(place, 'node', yarn, 'node', program)).toBe(answer);
  });
});

// docs/transformers.md, docs/migrating.md: a package of somebody else's requires onnxruntime-node, and gets this one.
describe.runIf(ours)("takes onnxruntime-node's place", () => {
  const pages = ['transformers.md', 'migrating.md'].map((page) => readFileSync(join(projectRoot, 'docs', page), 'utf8'));
  let user: string;
  beforeAll(async () => {
    const place = join(folder, 'user');
    mkdirSync(place);
    const manifest = { name: 'user', version: '1.0.0', dependencies: { 'onnxruntime-node': '1.14.0' } };
    writeFileSync(join(place, 'package.json'), JSON.stringify(manifest));
    writeFileSync(join(place, 'index.js'), "module.exports = require('onnxruntime-node');");
    user = `file:${await packed(place, folder)}`;
  });
  /** A project of that package, with a program that has the engine from it. */
  const userProject = (name: string, manifest: (files: Record<string, string>, ours: string) => object): string => {
    const place = project(name, ({ infernode, ...others }) => manifest(others, infernode!));
    const program = readFileSync(join(place, 'program.cjs'), 'utf8').replace("'infernode'", "'user'");
    writeFileSync(join(place, 'user.cjs'), program);
    return place;
  };

  it('in the dependencies of a program alone, by npm', () => {
    for (const page of pages.slice(1)) expect(page).toContain('npm install onnxruntime-node@file:infernode-0.1.0.tgz');
    const place = project('in-place', ({ infernode: _, ...dependencies }) => ({ dependencies }));
    cpSync(archives['infernode']!, join(place, 'infernode-0.1.0.tgz'));
    start(place, 'npm', 'install', 'onnxruntime-node@file:infernode-0.1.0.tgz', '--no-audit', '--no-fund', '--no-update-notifier'); // prettier-ignore
    const program = readFileSync(join(place, 'program.mjs'), 'utf8').replace("'infernode'", "'onnxruntime-node'");
    writeFileSync(join(place, 'in-place.mjs'), program);
    expect(start(place, 'node', 'in-place.mjs')).toBe(answer);
  });

  it('in those of its dependencies, by overrides of npm', () => {
    const place = userProject('overrides-npm', (others, ours) => ({
      dependencies: { user, 'onnxruntime-node': ours },
      overrides: { ...others, 'onnxruntime-node': '$onnxruntime-node' },
    }));
    start(place, 'npm', 'install', '--no-audit', '--no-fund', '--no-update-notifier');
    expect(start(place, 'node', 'user.cjs')).toBe(answer);
  });

  it('by those of pnpm', async (context) => {
    expect(pages[0]).toMatch(/With pnpm\nthe override is `"onnxruntime-node": "file:infernode-0\.1\.0\.tgz"` under `pnpm\.overrides`/);
    const pnpm = join(await available(context, 'pnpm', tools), 'node_modules', 'pnpm', 'bin', 'pnpm.cjs');
    const place = userProject('overrides-pnpm', (others, ours) => ({
      dependencies: { user },
      pnpm: { overrides: { ...others, 'onnxruntime-node': ours } },
    }));
    start(place, 'node', pnpm, 'install', '--offline', '--store-dir', join(folder, 'store'));
    expect(start(place, 'node', 'user.cjs')).toBe(answer);
  });

  it("by Yarn's resolutions", async (context) => {
    const yarn = join(await available(context, 'Yarn', tools), 'node_modules', '@yarnpkg', 'cli-dist', 'bin', 'yarn.js');
    const place = userProject('overrides-yarn', (others, ours) => ({
      dependencies: { user },
      resolutions: { ...others, 'onnxruntime-node': ours },
    }));
    writeFileSync(join(place, 'yarn.lock'), '');
    start(place, 'node', yarn, 'install');
    expect(start(place, 'node', yarn, 'node', 'user.cjs')).toBe(answer);
  });
});
