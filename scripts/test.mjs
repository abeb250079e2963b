// Installs, builds and runs all tests: native ones (doctest), then those of the JavaScript side (vitest).
// The last line is `N passed, N failed`.
//
// usage: npm test [-- --native | --js] [-- vitest filters...]
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { buildNative, buildTypeScript } from './build.mjs';
import { runNativeTests } from './lib/native-tests.mjs';
import { live } from './lib/live.mjs';
import { at, bin, runMain, say } from './lib/project.mjs';
import { setup } from './setup.mjs';

/** Tests of units may count threads and memory, and run one file at a time; of the others, two. */
const stages = [
  { name: 'units', args: ['test/unit'] },
  { name: 'models and clients', args: ['--exclude=test/unit/**', '--fileParallelism', '--maxWorkers=2'] },
];

async function runVitest(name, args) {
  say(`tests of the JavaScript side: ${name}`);
  const report = at('build', 'reports', `vitest-${name.split(/\W/)[0]}.json`);
  mkdirSync(at('build', 'reports'), { recursive: true });
  rmSync(report, { force: true });
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  const { code } = await live(process.execPath, [bin('vitest/vitest.mjs'), 'run', ...reporters, ...args]);
  if (!existsSync(report)) return { passed: 0, failed: 1, skipped: 0 };
  const result = JSON.parse(readFileSync(report, 'utf8'));
  const failed = result.numFailedTests;
  return {
    passed: result.numPassedTests,
    // A file that cannot load, or an unhandled error, fails the run without failing a test.
    failed: code !== 0 && failed === 0 ? 1 : failed,
    skipped: result.numPendingTests + (result.numTodoTests ?? 0),
  };
}

runMain(async () => {
  const args = process.argv.slice(2);
  const filters = args.filter((arg) => arg !== '--native' && arg !== '--js');
  const native = !args.includes('--js') && filters.length === 0;
  const js = !args.includes('--native');
  await setup({ tests: true });
  await buildNative({ tests: native });
  await buildTypeScript();

  const totals = { passed: 0, failed: 0, skipped: 0 };
  const add = (counts) => Object.keys(totals).forEach((key) => (totals[key] += counts[key]));
  if (native) add(await runNativeTests(at('build')));
  if (js && filters.length > 0) add(await runVitest('chosen', filters));
  else if (js) for (const { name, args: which } of stages) add(await runVitest(name, which));

  if (totals.passed === 0) totals.failed = Math.max(totals.failed, 1); // nothing ran: not a success
  if (totals.failed > 0) process.exitCode = 1;
  const skipped = totals.skipped > 0 ? `, ${totals.skipped} skipped` : '';
  console.log(`${totals.passed} passed, ${totals.failed} failed${skipped}`);
});
