// A clone whose setup has not been run: CMake says what is missing and what fetches it. A machine without Clang: the linters'
// wheel finds a compiler's headers.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clangTool, compilerHeaders } from '../../scripts/lib/clang-tools.mjs';
import { at, root } from '../../scripts/lib/project.mjs';
import { available } from '../fixtures/available.js';

const start = promisify(execFile);
let folder;

/** Runs CMake with an empty home; what it wrote to both streams, and whether it failed. */
async function cmake(...args) {
  const env = { ...process.env, HOME: folder, XDG_CACHE_HOME: '', INFERNODE_CACHE: '' };
  const told = ({ stdout, stderr }) => (stdout + stderr).replaceAll(/\s+/g, ' ');
  try {
    return { failed: false, output: told(await start('cmake', args, { env })) };
  } catch (error) {
    return { failed: true, output: told(error) };
  }
}

const configure = (...args) =>
  cmake(
    ...['-S', root, '-B', join(folder, 'build'), `-DINFERNODE_NODE_MODULES=${join(folder, 'none')}`],
    '-DCMAKE_IGNORE_PATH=/usr/include;/usr/local/include;/opt/homebrew/include',
    ...args,
  );

beforeAll(() => {
  mkdirSync(at('build'), { recursive: true });
  folder = mkdtempSync(at('build', 'bare-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('is told to run setup', async () => {
  const { failed, output } = await configure();
  expect(failed).toBe(true);
  expect(output).toMatch(/Wuffs [^:]*not found: run node scripts\/setup\.mjs/);
});

it('is told how to get what the tests need, by CMake and by the targets of tests', async () => {
  const { failed, output } = await configure(`-DWUFFS_INCLUDE_DIR=${folder}`);
  expect(failed).toBe(false);
  expect(output).toMatch(/protozero not found[^:]*: run node scripts\/setup\.mjs/);
  const doctest = 'native tests need doctest/doctest.h: run node scripts/setup.mjs';
  expect(output).toContain(doctest);
  for (const target of ['test_ops', 'test_base']) {
    const build = await cmake('--build', join(folder, 'build'), '--target', target);
    expect(build.failed).toBe(true);
    expect(build.output).toContain(doctest);
  }
});

it.runIf(process.platform === 'linux' && process.arch === 'x64')(
  'reads intrinsics with clang-tidy, whose wheel has no headers of a compiler',
  async (context) => {
    const tidy = () => Promise.all([clangTool('clang-tidy'), compilerHeaders()]);
    const [program, headers] = await available(context, 'clang-tidy', tidy);
    const file = join(folder, 'zeros.cpp');
    writeFileSync(file, '#include <immintrin.h>\n__m256 zeros() { return _mm256_setzero_ps(); }\n');
    const flags = [
      '--quiet',
      '--checks=-*,readability-identifier-naming',
      ...headers,
      file,
      '--',
      '-std=c++20',
      '-mavx',
    ];
    const { stdout } = await start(program, flags); // it would fail with 'file not found'
    expect(stdout).not.toContain('error:');
  },
);
