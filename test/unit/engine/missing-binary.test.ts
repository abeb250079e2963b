import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { build as viteBuild } from 'vite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { projectRoot } from '../../../scripts/lib/engine.mjs';
import { ours } from '../../fixtures/engine.js';
import { add } from '../../fixtures/models.js';

/** A project with the package, but for its binary. */
let folder: string;
const installed = (...names: string[]): string => join(folder, 'node_modules', ...names);
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'infernode-missing-'));
  mkdirSync(installed('infernode', 'prebuilds', 'plan9-mips'), { recursive: true });
  cpSync(join(projectRoot, 'dist'), installed('infernode', 'dist'), { recursive: true });
  cpSync(join(projectRoot, 'package.json'), installed('infernode', 'package.json'));
  for (const name of ['onnxruntime-common', 'node-gyp-build']) {
    symlinkSync(join(projectRoot, 'node_modules', name), installed(name));
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const model = Buffer.from(add()).toString('base64');
const program = (load: string): string => `
  ${load}
  const said = { loaded: typeof ort.InferenceSession.create };
  const failure = (error) => ({ code: error.code, message: error.message, name: error.constructor.name });
  try { said.listed = ort.listSupportedBackends(); } catch (error) { said.listed = failure(error); }
  ort.InferenceSession.create(Buffer.from('${model}', 'base64')).then(
    () => (said.created = true),
    (error) => (said.created = failure(error)),
  ).then(() => console.log(JSON.stringify(said)));`;

/** What a program says, run in the project. */
function run(name: string, text: string, options: readonly string[] = [], env: NodeJS.ProcessEnv = {}): any {
  writeFileSync(join(folder, name), text);
  const { INFERNODE_BINARY: _, INFERNODE_PREBUILD: __, ...rest } = process.env;
  const { stdout, stderr } = spawnSync(process.execPath, [...options, name], { cwd: folder, encoding: 'utf8', env: { ...rest, ...env } }); // prettier-ignore
  expect(stdout, stderr).not.toBe('');
  return JSON.parse(stdout);
}

const required = program("const ort = require('infernode');");
const imported = program("const ort = await import('infernode');");

describe.runIf(ours)('where no binary loads', () => {
  const message = new RegExp(
    `infernode has no binary that loads on ${process.platform}-${process.arch}[^]*Binaries in [^]*: plan9-mips\\.[^]*npm run build`,
  );

  it.each([
    ['require', 'program.cjs', required],
    ['import', 'program.mjs', imported],
  ])('%s works, and the first use says so', (_, name, text) => {
    const failure = { code: 'NO_BINARY', message: expect.stringMatching(message), name: 'InferenceError' };
    expect(run(name, text)).toEqual({ loaded: 'function', listed: failure, created: failure });
  });

  it('a tarball of a checkout is told of as one, and of packages only where it names them', () => {
    const { version, ...manifest } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8'));
    const name = `@infernode/${process.platform}-${process.arch}`;
    const failure = () => run('program.cjs', required).created.message;
    expect(failure()).toContain(
      ' This package was packed on plan9-mips, which `npm pack` does of a checkout: build and',
    );
    expect(failure()).not.toContain('npm install');
    const release = { version, ...manifest, optionalDependencies: { [name]: version } };
    writeFileSync(installed('infernode', 'package.json'), JSON.stringify(release));
    expect(failure()).toContain(`${name} is not installed: run \`npm install ${name}@${version}\``);
    cpSync(join(projectRoot, 'package.json'), installed('infernode', 'package.json'));
  });

  it('INFERNODE_PREBUILD names a folder that has one', () => {
    const { created } = run('program.cjs', required, [], { INFERNODE_PREBUILD: projectRoot });
    expect(created).toBe(true);
  });

  it('INFERNODE_BINARY names the file itself, by any name, or the error says that it does not load', () => {
    cpSync(join(projectRoot, 'build', 'Release', 'infernode.node'), join(folder, 'engine.bin.node'));
    const started = (path: string) => run('program.cjs', required, [], { INFERNODE_BINARY: path }).created;
    expect(started('engine.bin.node')).toBe(true); // from the working folder
    expect(started(join(folder, 'engine.bin.node'))).toBe(true);
    expect(started('nowhere.node')).toMatchObject({
      code: 'NO_BINARY',
      message: expect.stringMatching(/INFERNODE_BINARY names 'nowhere\.node', which does not load:/),
    });
  });
});

describe.runIf(ours)('a program that may not load addons', () => {
  const text = required.replace("'infernode'", JSON.stringify(projectRoot));

  it('is told of --no-addons', () => {
    expect(run('program.cjs', text, ['--no-addons']).created).toMatchObject({
      code: 'NO_BINARY',
      message: expect.stringMatching(/started with --no-addons, and infernode is one: start it without\./),
    });
  });

  const permission = process.allowedNodeEnvironmentFlags.has('--permission') ? '--permission' : '--experimental-permission'; // prettier-ignore
  it('is told of --allow-addons', () => {
    expect(run('program.cjs', text, [permission, '--allow-fs-read=*']).created).toMatchObject({
      code: 'NO_BINARY',
      message: expect.stringMatching(/started with --permission: add --allow-addons\./),
    });
  });

  it('may, with that, read no more than the package, and works', () => {
    const places = [folder, projectRoot].map((place) => `--allow-fs-read=${place}/`);
    expect(run('program.cjs', text, [permission, '--allow-addons', ...places]).created).toBe(true);
  });
});

describe.runIf(ours)('a bundle', () => {
  const source = (): string => {
    const path = join(folder, 'source.mjs');
    writeFileSync(path, program("import * as ort from 'infernode';"));
    return path;
  };
  const esbuild = (outfile: string, options: object) =>
    build({ entryPoints: [source()], outfile: join(folder, outfile), bundle: true, platform: 'node', logLevel: 'error', ...options }); // prettier-ignore
  const failureOf = (name: string): string => spawnSync(process.execPath, [join(folder, name)], { encoding: 'utf8' }).stderr; // prettier-ignore
  const hint = /bundle[^]*esbuild --external:infernode[^]*docs\/bundlers\.md/;

  it('of esbuild as an ES module says that the package is to be left out', async () => {
    await esbuild('bundle.mjs', { format: 'esm' });
    expect(failureOf('bundle.mjs')).toMatch(hint);
  });

  it('of Vite says so too', async () => {
    await viteBuild({ root: folder, logLevel: 'silent', configFile: false, ssr: { noExternal: true }, build: { ssr: source(), outDir: 'vite', minify: false } }); // prettier-ignore
    const file = ['vite/source.mjs', 'vite/source.js'].find((name) => existsSync(join(folder, name)))!;
    expect(failureOf(file)).toMatch(hint);
  });

  it('of esbuild as CommonJS says so at the first use, and takes a binary that lies beside it', async () => {
    mkdirSync(join(folder, 'out'));
    await esbuild('out/bundle.cjs', { format: 'cjs' });
    const bundle = () =>
      JSON.parse(
        spawnSync(process.execPath, ['out/bundle.cjs'], {
          cwd: folder,
          encoding: 'utf8',
          env: { ...process.env, INFERNODE_BINARY: '' },
        }).stdout,
      ).created;
    expect(bundle()).toMatchObject({ code: 'NO_BINARY', message: expect.stringMatching(hint) });
    cpSync(join(projectRoot, 'build', 'Release', 'infernode.node'), join(folder, 'out', 'infernode.node'));
    expect(bundle()).toBe(true);
  });
});

it.runIf(ours)('classes have their own names in stacks and in util.inspect', () => {
  const text = `
    const { inspect } = require('node:util');
    const { InferenceSession, Tensor, InferenceError, IoBinding, EngineTensor } = require(${JSON.stringify(projectRoot)});
    const session = InferenceSession.createSync(Buffer.from('${model}', 'base64'));
    session.run({}).catch(({ stack }) => console.log(JSON.stringify({
      names: [InferenceSession, Tensor, InferenceError, IoBinding, EngineTensor].map(({ name }) => name),
      inspected: inspect(session, { depth: 0 }).split(' ')[0],
      stack,
    })));`;
  const { names, inspected, stack } = run('names.cjs', text);
  expect(names).toEqual(['InferenceSession', 'Tensor', 'InferenceError', 'IoBinding', 'EngineTensor']);
  expect(inspected).toBe('InferenceSession');
  expect(stack).toContain('InferenceSession.run');
  expect(stack).not.toMatch(/[A-Za-z]\d+\.(run|encode)/);
});
