// Builds and runs native tests with sanitizers.
//
// usage: node scripts/sanitize.mjs asan-ubsan|tsan [folder...]     (no folder: all)
import { existsSync } from 'node:fs';
import { cmakeBuild, must } from './lib/live.mjs';
import { runNativeTests } from './lib/native-tests.mjs';
import { at, runMain, say } from './lib/project.mjs';
import { setup } from './setup.mjs';

runMain(async () => {
  const [preset, ...folders] = process.argv.slice(2);
  if (!['asan-ubsan', 'tsan'].includes(preset))
    throw new Error('usage: node scripts/sanitize.mjs asan-ubsan|tsan [folder...]');
  await setup({ tests: true });
  const present = folders.filter((folder) => existsSync(at('test', 'native', folder)));
  say(`${preset}: ${folders.length > 0 ? present.join(' ') : 'all native tests'}`);
  const build = at('build', preset);
  await must('cmake', ['--preset', preset]);
  const targets = present.length > 0 ? ['--target', ...present.map((folder) => `test_${folder}`)] : [];
  await cmakeBuild(build, targets);
  const { passed, failed } = await runNativeTests(build, {
    only: folders.length > 0 ? present : undefined,
    env: { ASAN_OPTIONS: 'detect_stack_use_after_return=1', UBSAN_OPTIONS: 'print_stacktrace=1' },
  });
  say(`${preset}: ${passed} passed, ${failed} failed under sanitizers`);
  if (failed > 0 || passed === 0) throw new Error(`${preset}: ${failed > 0 ? `${failed} failed` : 'no test ran'}`);
});
