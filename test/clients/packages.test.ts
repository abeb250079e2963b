import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { projectRoot } from '../../scripts/lib/engine.mjs';
import { pack, packageName, stageMain, stagePlatform } from '../../scripts/lib/packages.mjs';
import { platforms } from '../../scripts/lib/platforms.mjs';
import { run } from '../../scripts/lib/run.mjs';
import { ours } from '../fixtures/engine.js';
import { matmul } from '../fixtures/models.js';
import { packed } from './packed.js';

// The packages of a release, with this checkout's binary in that of this platform, where every way to the network is a
// dead end.
const folder = mkdtempSync(join(tmpdir(), 'infernode-packages-'));
const binary = join(projectRoot, 'build', 'Release', 'infernode.node');
const glibc = 'glibcVersionRuntime' in (process.report.getReport() as { header: object }).header;
const libc = process.platform === 'linux' ? (glibc ? 'glibc' : 'musl') : undefined;
const platform = platforms.find((one) => one.os === process.platform && one.cpu === process.arch && one.libc === libc)!;
const name = packageName(platform);
const archives: Record<string, string> = {};

beforeAll(async () => {
  if (!ours || platform === undefined) return;
  stageMain(platforms, join(folder, 'staged', 'infernode'));
  stagePlatform(platform, binary, join(folder, 'staged', 'binary'));
  archives.infernode = (await pack(join(folder, 'staged', 'infernode'), folder)).path;
  archives[name] = (await pack(join(folder, 'staged', 'binary'), folder)).path;
  for (const other of ['onnxruntime-common', 'node-gyp-build'])
    archives[other] = await packed(join(projectRoot, 'node_modules', other), folder);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const program = `
  const { InferenceSession, Tensor } = require('infernode');
  (async () => {
    const session = await InferenceSession.create(Buffer.from('${Buffer.from(matmul()).toString('base64')}', 'base64'));
    const square = new Tensor('float32', new Float32Array(4).fill(1), [2, 2]);
    const { c } = await session.run({ a: square, b: square });
    return c.data[0];
  })().then((answer) => ({ answer }), ({ code, message }) => ({ code, message })).then((said) => {
    const loaded = Object.keys(require.cache).map((path) => path.replaceAll('\\\\\\\\', '/'));
    console.log(JSON.stringify({ ...said, loaded: loaded.filter((path) => /\\.node$|node-gyp-build\\.js$/.test(path)) }));
  });`;

/** What the program says in a project. */
function said(place: string): { answer?: number; code?: string; message?: string; loaded: string[] } {
  writeFileSync(join(place, 'program.cjs'), program);
  const { INFERNODE_BINARY: _, INFERNODE_PREBUILD: __, ...env } = process.env;
  const { stdout, stderr } = spawnSync(process.execPath, ['program.cjs'], { cwd: place, env, encoding: 'utf8' });
  expect(stderr).toBe('');
  return JSON.parse(stdout);
}

/** A project with these packages. Not the synchronous form of npm: a blocked worker cannot report to vitest. */
async function installed(title: string, names: readonly string[]): Promise<string> {
  const place = join(folder, title);
  mkdirSync(place);
  const dependencies = Object.fromEntries(names.map((each) => [each, `file:${archives[each]}`]));
  writeFileSync(join(place, 'package.json'), JSON.stringify({ private: true, name: title, dependencies }));
  const registry = 'http://127.0.0.1:9';
  const env = { npm_config_registry: registry, npm_config_fetch_retries: '0', npm_config_cache: join(folder, 'cache') };
  await run('npm', ['install', '--no-audit', '--no-fund'], { cwd: place, env });
  return place;
}

describe.runIf(ours && platform !== undefined)('packages of a release', () => {
  const all = ['infernode', name, 'onnxruntime-common', 'node-gyp-build'];
  let place: string;
  beforeAll(async () => void (place = await installed('all', all)));
  const inModules = (...parts: string[]): string => join(place, 'node_modules', ...parts);

  it('the main one is JavaScript, and depends on the binaries of all platforms if they can be had', () => {
    const manifest = JSON.parse(readFileSync(inModules('infernode', 'package.json'), 'utf8'));
    const expected = Object.fromEntries(platforms.map((one) => [packageName(one), manifest.version]));
    expect(manifest.optionalDependencies).toEqual(expected);
    expect(manifest).not.toHaveProperty('scripts');
    for (const key of ['os', 'cpu', 'libc']) expect(manifest).not.toHaveProperty(key);
  });

  it('those of a platform say what they are for, and run no script', () => {
    const manifest = JSON.parse(readFileSync(inModules(...name.split('/'), 'package.json'), 'utf8'));
    expect(manifest).toMatchObject({ os: [platform.os], cpu: [platform.cpu] });
    expect(manifest.libc).toEqual(platform.libc && [platform.libc]);
    expect(manifest).not.toHaveProperty('scripts');
  });

  it('run, by the file of the platform and nothing that searches', () => {
    expect(said(place)).toEqual({ answer: 2, loaded: [expect.stringMatching(`/node_modules/${name}/infernode.node$`)] });
  });

  it('run where the binary lies within the main package', () => {
    const nested = inModules('infernode', 'node_modules', ...name.split('/'));
    mkdirSync(dirname(nested), { recursive: true });
    renameSync(inModules(...name.split('/')), nested);
    try {
      expect(said(place)).toEqual({ answer: 2, loaded: [expect.stringMatching(/node_modules\/infernode\/node_modules/)] });
    } finally {
      renameSync(nested, inModules(...name.split('/')));
    }
  });

  it.runIf(process.platform === 'linux')('take that of the right C library where both are installed, and say what else is', () => {
    const own = `${process.platform}-${process.arch}${libc === 'musl' ? '-musl' : ''}`;
    const other = own.endsWith('-musl') ? own.slice(0, -'-musl'.length) : `${own}-musl`;
    mkdirSync(inModules('@infernode', other), { recursive: true });
    writeFileSync(inModules('@infernode', other, 'infernode.node'), 'for another C library');
    expect(said(place).answer).toBe(2);
    renameSync(inModules('@infernode', own), join(place, 'aside'));
    const { code, message } = said(place);
    renameSync(join(place, 'aside'), inModules('@infernode', own));
    rmSync(inModules('@infernode', other), { recursive: true });
    expect(code).toBe('NO_BINARY');
    expect(message).toContain(`${name} is not installed, but @infernode/${other}, which is for another C library: run \`npm install ${name}@`);
  });

  it('say when the binary is there and does not load', () => {
    const file = inModules(...name.split('/'), 'infernode.node');
    renameSync(file, `${file}.aside`);
    writeFileSync(file, 'damaged');
    const { code, message } = said(place);
    renameSync(`${file}.aside`, file);
    expect(code).toBe('NO_BINARY');
    expect(message).toContain(`${name} is installed and does not load`);
  });

  it('install where the binary cannot be had, and say so at the first use', async () => {
    const without = await installed('without', all.filter((each) => each !== name));
    const { code, message } = said(without);
    expect(code).toBe('NO_BINARY');
    expect(message).toMatch(new RegExp(`${name} is not installed: run \`npm install ${name}@\\d[^\`]*\`. Package managers leave it out`));
  });

  it('are found by way of links, as pnpm lays packages out', () => {
    const store = (each: string): string => join(folder, 'store', each.replace('/', '+'), 'node_modules');
    for (const each of all) cpSync(inModules(...each.split('/')), join(store(each), ...each.split('/')), { recursive: true });
    const link = (from: string, each: string): void => {
      mkdirSync(dirname(join(from, ...each.split('/'))), { recursive: true });
      symlinkSync(join(store(each), ...each.split('/')), join(from, ...each.split('/')), 'junction');
    };
    for (const each of all.slice(1)) link(store('infernode'), each);
    link(join(folder, 'linked', 'node_modules'), 'infernode');
    expect(said(join(folder, 'linked')).answer).toBe(2);
  });
});
