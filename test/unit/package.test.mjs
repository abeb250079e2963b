// The package as a consumer meets it: what both module systems see, what the types say, what the addon exports.
import { execFile } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { platforms } from '../../scripts/lib/platforms.mjs';
import { at, bin, root } from '../../scripts/lib/project.mjs';
import { available } from '../fixtures/available.js';
import { double } from './engine/models.js';

// Not the synchronous form: a blocked worker cannot report to vitest.
const start = promisify(execFile);
const manifest = JSON.parse(readFileSync(at('package.json'), 'utf8'));
const peerNames = [
  'InferenceSession',
  'TRACE',
  'TRACE_EVENT_BEGIN',
  'TRACE_EVENT_END',
  'TRACE_FUNC_BEGIN',
  'TRACE_FUNC_END',
  'Tensor',
  'env',
  'listSupportedBackends',
  'registerBackend',
];

let consumer;
beforeAll(() => {
  mkdirSync(at('build'), { recursive: true });
  consumer = mkdtempSync(at('build', 'consumer-'));
  mkdirSync(join(consumer, 'node_modules'));
  symlinkSync(root, join(consumer, 'node_modules', 'infernode'), 'junction');
});
afterAll(() => rmSync(consumer, { recursive: true, force: true }));

async function runConsumer(name, source) {
  writeFileSync(join(consumer, name), source);
  return JSON.parse((await start(process.execPath, [join(consumer, name)])).stdout);
}

describe('entries', () => {
  it('gives require() every name of the peer', async () => {
    const names = await runConsumer('names.cjs', `console.log(JSON.stringify(Object.keys(require('infernode'))));`);
    expect(names).toEqual(expect.arrayContaining(peerNames));
  });

  it('gives import the same names, a default, and the same classes as require()', async () => {
    const result = await runConsumer(
      'names.mjs',
      `import { createRequire } from 'node:module';
      import * as all from 'infernode';
      import ort, { Tensor, InferenceSession } from 'infernode';
      const required = createRequire(import.meta.url)('infernode');
      const same = [ort.Tensor, required.Tensor, all.Tensor].every((c) => c === Tensor)
        && [ort.InferenceSession, required.InferenceSession].every((c) => c === InferenceSession);
      console.log(JSON.stringify({ names: Object.keys(all), same }));`,
    );
    expect(result.names).toEqual(expect.arrayContaining([...peerNames, 'default']));
    expect(result.same).toBe(true);
  });
});

it('loads and runs beside what a program has put on Object.prototype', async () => {
  writeFileSync(join(consumer, 'double.onnx'), double());
  const result = await runConsumer(
    'prototype.cjs',
    `Object.prototype.stray = 2;
    Array.prototype.stray = 1;
    const { createBatcher, InferenceSession, Tensor } = require('infernode');
    (async () => {
      const session = await InferenceSession.create(require('node:path').join(__dirname, 'double.onnx'));
      const feeds = { x: new Tensor('float32', [1, 2], [2]) };
      const answers = [await session.run(feeds), session.runSync(feeds), await createBatcher(session).run(feeds)];
      console.log(JSON.stringify(answers.map(({ y }) => [...y.data])));
    })();`,
  );
  expect(result).toEqual([[2, 4], [2, 4], [2, 4]]); // prettier-ignore
});

it('require() reads what many programs do without when they call it', async () => {
  const read = await runConsumer(
    'later.cjs',
    `const later = require('node:path').join(require.resolve('infernode'), '../later.cjs');
    const { createBatcher, Tensor } = require('infernode');
    const read = [later in require.cache];
    try { createBatcher(0); } catch (error) { read.push(later in require.cache, error.code); }
    Tensor.fromImage(0).catch((error) => console.log(JSON.stringify([...read, error.code])));`,
  );
  expect(read).toEqual([false, true, 'INVALID_ARGUMENT', 'INVALID_ARGUMENT']);
});

describe('onnxruntime-common', () => {
  it('has the same classes and tables for whoever requires it', async () => {
    const [same, index] = await runConsumer(
      'common.cjs',
      `const infernode = require('infernode');
      const load = require('node:module').createRequire(require.resolve('infernode'));
      const index = load.resolve('onnxruntime-common');
      const loaded = index in require.cache;
      const common = load('onnxruntime-common');
      const same = ['env', 'registerBackend', 'TRACE', 'TRACE_FUNC_END'].every((key) => infernode[key] === common[key])
        && infernode.Tensor.prototype === common.Tensor.prototype;
      console.log(JSON.stringify([same, loaded]));`,
    );
    expect(same).toBe(true);
    expect(index).toBe(false); // src/start-up/common.ts has found the files that it needs; otherwise it loads the index
  });
});

describe('the README', () => {
  const readme = readFileSync(at('README.md'), 'utf8');

  it('names a model of fetch-models --list that fits its ten lines', async (context) => {
    const script = at('bench', 'models', 'fetch-models.mjs');
    const [, name] = /`node \S+fetch-models\.mjs (\S+) --as model\.onnx`/.exec(readme);
    const list = await start(process.execPath, [script, '--list']);
    expect(list.stdout).toMatch(new RegExp(`^${name} .*; fits the README's ten lines$`, 'm'));
    await available(context, name, () =>
      start(process.execPath, [script, name, '--as', 'model.onnx'], { cwd: consumer }),
    );
    writeFileSync(join(consumer, 'example.mjs'), /```js\n([^]*?)```/.exec(readme)[1]);
    const { stdout, stderr } = await start(process.execPath, ['example.mjs'], { cwd: consumer });
    expect(stderr).toBe('');
    expect(stdout).toMatch(/name: 'x'[^]*Float32Array\(50176\)/); // 224 x 224
  });

  it('links to files that are there, and that the package holds', () => {
    const links = [...readme.matchAll(/\]\(([^)]+)\)/g)].map((match) => match[1]);
    expect(links.length).toBeGreaterThan(5);
    for (const link of links) {
      expect(existsSync(at(link.split('#')[0])), link).toBe(true);
      expect(manifest.files, link).toContain(link.split('/')[0]);
    }
  });
});

describe('the package', () => {
  const packed = (path) => manifest.files.some((name) => path === name || path.startsWith(`${name}/`));

  it('holds no sources that it could not be built from', () => {
    for (const path of ['CMakeLists.txt', 'src-native', 'providers', 'scripts', 'src'])
      expect(packed(path), path).toBe(false);
  });

  it('names its binaries as text, where tracers of files find them', () => {
    const text = readFileSync(at('dist', 'index.cjs'), 'utf8');
    const named = (path) =>
      expect(text).toMatch(new RegExp(`join\\)?\\(__dirname, "${path.replaceAll('.', '\\.')}/infernode\\.node"\\)`));
    for (const { name, os, cpu } of platforms) {
      named(`../prebuilds/${os}-${cpu}`);
      named(`../../@infernode/${name}`);
    }
  });

  it('has a command', () => {
    expect(existsSync(at(manifest.bin.infernode))).toBe(true);
    expect(packed(manifest.bin.infernode)).toBe(true);
  });

  it('holds the notices of what is compiled into the addon', () => {
    expect(packed('THIRD-PARTY-NOTICES.md')).toBe(true);
    const notices = readFileSync(at('THIRD-PARTY-NOTICES.md'), 'utf8');
    for (const name of ['protozero', 'node-addon-api']) {
      const { version } = JSON.parse(readFileSync(at('node_modules', name, 'package.json'), 'utf8'));
      expect(notices).toContain(`## ${name} ${version}\n`);
      expect(notices).toContain(readFileSync(at('node_modules', name, 'LICENSE.md'), 'utf8').trim());
    }
    expect(notices).toContain('Copyright 2017 The Wuffs Authors.');
  });
});

describe('types', () => {
  const program = `
    import { InferenceSession, Tensor, env, listSupportedBackends, type TypedTensor } from 'infernode';
    import type { OnnxValue, TensorConstructor, Env } from 'infernode';
    export async function main(): Promise<readonly number[]> {
      const options: InferenceSession.SessionOptions = { executionProviders: ['cpu'], graphOptimizationLevel: 'all' };
      const session: InferenceSession = await InferenceSession.create('model.onnx', options);
      const x: TypedTensor<'float32'> = new Tensor('float32', new Float32Array(1), [1]);
      const half: TypedTensor<'float16'> = new Tensor('float16', new Float16Array(2), [2]);
      const results: Record<string, OnnxValue> = await session.run({ x });
      const make: TensorConstructor = Tensor;
      const e: Env = env;
      // @ts-expect-error a number is no path
      await InferenceSession.create(1);
      return [listSupportedBackends().length, Object.keys(results).length, make.length, e.logLevel ? 1 : 0, half.size];
    }`;

  // The declarations themselves are checked once: it takes long.
  it.each([
    ['node16', 'node16', 'consumer.mts', true],
    ['nodenext', 'nodenext', 'consumer.cts', false],
    ['esnext', 'bundler', 'consumer.ts', true],
    ['commonjs', 'node10', 'consumer.ts', true],
  ])(
    'compile with module %s, resolution %s, in %s',
    { timeout: 180_000 },
    async (module, moduleResolution, file, skipLibCheck) => {
      const compilerOptions = {
        target: 'es2022',
        lib: ['es2022', 'dom', 'esnext.disposable', 'esnext.float16'],
        module,
        moduleResolution,
        strict: true,
        noEmit: true,
        skipLibCheck,
        preserveSymlinks: true,
        types: ['node'],
        typeRoots: [at('node_modules', '@types')],
      };
      writeFileSync(join(consumer, file), program);
      const config = join(consumer, 'tsconfig.json');
      writeFileSync(config, JSON.stringify({ compilerOptions, files: [file] }));
      const tsc = start(process.execPath, [bin('typescript/bin/tsc'), '-p', config], { cwd: consumer });
      const output = await tsc.then(
        () => '',
        (error) => error.stdout || error.message,
      );
      expect(output).toBe('');
    },
  );
});

describe('installation', () => {
  it('runs no script of ours', () => {
    for (const name of ['preinstall', 'install', 'postinstall', 'prepare']) {
      expect(manifest.scripts).not.toHaveProperty(name);
    }
  });

  it('npm runs `prebuild` before `npm run build`, where it does nothing', async () => {
    const { stdout, stderr } = await start(process.execPath, [at('scripts', 'prebuild.mjs')]);
    expect(stdout + stderr).toBe('');
  });

  it('needs two packages at run time', () => {
    expect(Object.keys(manifest.dependencies).sort()).toEqual(['node-gyp-build', 'onnxruntime-common']);
  });

  it('takes any later version of them, so that no release of theirs has to come first', () => {
    for (const range of Object.values(manifest.dependencies)) expect(range).toMatch(/^\^\d+\.\d+\.\d+$/);
  });
});

describe.runIf(process.platform === 'linux')('the addon', () => {
  const file = () => at('build', 'Release', 'infernode.node');

  it('exports its Node-API entry points and nothing else', async () => {
    const { stdout: symbols } = await start('nm', ['-D', '--defined-only', file()]);
    const names = [...symbols.matchAll(/ [A-Za-z] (\S+)/g)].map((match) => match[1]).sort();
    expect(names).toEqual(['napi_register_module_v1', 'node_api_module_get_api_version_v1']);
  });

  it('leaves no symbol undefined but those of Node-API and the C library', async () => {
    const { stdout: symbols } = await start('nm', ['-D', '--undefined-only', file()]);
    const names = [...symbols.matchAll(/ [Uw] (\S+)/g)].map((match) => match[1]);
    expect(
      names.filter(
        (name) => !/^(napi_|node_api_)|@GLIBC|^(__gmon_start__|_ITM_|__cxa_(finalize|pure_virtual)$)/.test(name),
      ),
    ).toEqual([]);
    expect(names.filter((name) => /^(socket|connect|send|getaddrinfo)/.test(name))).toEqual([]); // no network
  });

  it('binds no thread to a processor, and hands JavaScript no memory that is not its own', async () => {
    const { stdout: symbols } = await start('nm', ['-D', '--undefined-only', file()]);
    expect(symbols).toContain('sched_getaffinity'); // it reads what it may use
    expect(symbols).not.toMatch(/setaffinity|napi_create_external|node_api_create_external/); // the latter fail in Electron
  });

  it('has nothing destroyed at exit, which threads may still use', async () => {
    const ours = ['src-native', 'providers', 'CMakeFiles/infernode_addon.dir'].flatMap((folder) =>
      readdirSync(at('build', folder), { recursive: true })
        .filter((name) => name.endsWith('.o'))
        .map((name) => `${folder}/${name}`),
    );
    expect(ours.length).toBeGreaterThan(300);
    const registers = (name) => {
      const bytes = readFileSync(at('build', name));
      return bytes.includes('__cxa_atexit') || bytes.includes('__cxa_thread_atexit');
    };
    expect(ours.filter(registers)).toEqual([]);
  });

  it('links against the C library alone', async () => {
    const { stdout: header } = await start('objdump', ['-p', file()]);
    const needed = [...header.matchAll(/NEEDED\s+(\S+)/g)].map((match) => match[1]);
    expect(needed).not.toEqual([]);
    for (const name of needed) expect(name).toMatch(/^(libc|libm|libdl|libpthread|librt|ld-linux.*)\.so/);
  });
});
