import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { projectRoot } from '../../scripts/lib/engine.mjs';
import { run } from '../../scripts/lib/run.mjs';
import { available } from '../fixtures/available.js';
import { ours } from '../fixtures/engine.js';
import { matmul } from '../fixtures/models.js';
import { install } from './install.js';

/** What users' tests do, where the names of their runner are global. */
const tests = `
  const bytes = Buffer.from('${Buffer.from(matmul()).toString('base64')}', 'base64');
  const square = () => new Tensor('float32', new Float32Array(4).fill(1), [2, 2]);
  test('a model from bytes', async () => {
    for (const given of [bytes, new Uint8Array(bytes)]) {
      const session = await InferenceSession.create(given);
      const { c } = await session.run({ a: square(), b: square() });
      expect(c.data).toEqual(new Float32Array(4).fill(2));
      expect(c.dims).toEqual([2, 2]);
      await expect(session.run({})).rejects.toThrow(/missing/);
      await session.release();
    }
  });
  test('on the calling thread', () => {
    expect(InferenceSession.createSync(bytes).runSync({ a: square(), b: square() }).c.data[3]).toBe(2);
  });`;

// It gives each file of tests classes and modules of its own, and loads addons once for all.
it.runIf(ours)('files of tests of jest load it, one after another and in workers', async (context) => {
  const folder = await available(context, 'jest', () => install({ dependencies: { jest: '30.5.2' } }));
  const place = join(folder, 'tests');
  mkdirSync(place, { recursive: true });
  const files = ['one', 'two', 'three'].map((name) => join(place, `${name}.test.js`));
  const names = `const { InferenceSession, Tensor } = require(${JSON.stringify(projectRoot)});`;
  for (const file of files) writeFileSync(file, names + tests);
  const jest = join(folder, 'node_modules', 'jest', 'bin', 'jest.js');
  for (const how of ['--runInBand', '--maxWorkers=2']) {
    const report = join(place, 'report.json');
    await run(process.execPath, [jest, how, '--json', `--outputFile=${report}`], { cwd: folder });
    const result = JSON.parse(readFileSync(report, 'utf8'));
    expect(result).toMatchObject({ numPassedTests: 6, numFailedTests: 0, success: true });
    rmSync(report);
  }
});

it.runIf(ours)('files of tests of vitest import it, in processes, in threads and in contexts of their own', async () => {
  const place = mkdtempSync(join(tmpdir(), 'infernode-vitest-'));
  const installed = (...names: string[]): string => join(place, 'node_modules', ...names);
  for (const name of ['dist', 'package.json'])
    cpSync(join(projectRoot, name), installed('infernode', name), { recursive: true });
  const binary = join('prebuilds', `${process.platform}-${process.arch}`, 'infernode.node');
  cpSync(join(projectRoot, 'build', 'Release', 'infernode.node'), installed('infernode', binary));
  for (const name of ['onnxruntime-common', 'node-gyp-build'])
    symlinkSync(join(projectRoot, 'node_modules', name), installed(name), 'junction');
  for (const name of ['one', 'two'])
    writeFileSync(join(place, `${name}.test.mjs`), `import { InferenceSession, Tensor } from 'infernode';${tests}`);
  const vitest = join(projectRoot, 'node_modules', 'vitest', 'vitest.mjs');
  const report = join(place, 'report.json');
  for (const pool of ['forks', 'threads', 'vmThreads']) {
    const args = ['run', '--globals', '--pool', pool, '--reporter=json', `--outputFile=${report}`];
    await run(process.execPath, [vitest, ...args], { cwd: place });
    const result = JSON.parse(readFileSync(report, 'utf8'));
    expect(result, pool).toMatchObject({ numPassedTests: 4, numFailedTests: 0, success: true });
    rmSync(report);
  }
  rmSync(place, { recursive: true });
});
