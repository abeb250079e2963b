// Native tests that depend on the processor, for arm64 under qemu: as one with NEON alone, one with dot products, and one
// with all that its kernels use. Each runs the rungs that it has, as INFERNODE_CPU names them.
//
// usage: node scripts/arm-tests.mjs [argument of doctest...]     e.g. -tc='*qgemm*': all cases take long
import { join } from 'node:path';
import { waysOfArm } from './lib/foreign-node.mjs';
import { cmakeBuild, live, must } from './lib/live.mjs';
import { platforms } from './lib/platforms.mjs';
import { at, root, runMain, say } from './lib/project.mjs';
import { zigTools } from './lib/zig.mjs';
import { setup } from './setup.mjs';

const tests = ['test_base', 'test_simd', 'test_microkernels'];
/** What qemu cannot: it does not keep to RLIMIT_AS. */
const leftOut = '-tce=a file for which there is no room in memory*';

runMain(async () => {
  await setup({ tests: true });
  const { zig } = platforms.find(({ name }) => name === 'linux-arm64');
  const folder = at('build', 'arm64');
  const options = {
    CMAKE_TOOLCHAIN_FILE: at('scripts', 'cmake', 'zig.cmake'),
    INFERNODE_ZIG_TOOLS: await zigTools(zig),
    INFERNODE_ZIG_TARGET: zig,
    INFERNODE_BUILD_ADDON: 'OFF',
    INFERNODE_WERROR: 'ON',
  };
  const definitions = Object.entries(options).map(([name, value]) => `-D${name}=${value}`);
  await must('cmake', ['-S', root, '-B', folder, '-G', 'Ninja', ...definitions]);
  await cmakeBuild(folder, ['--target', ...tests]);
  const failed = [];
  for (const test of tests) {
    const { ways, missing } = await waysOfArm(join(folder, test));
    if (missing !== undefined) throw new Error(missing);
    for (const { label, command } of ways) {
      say(`${test}, ${label}`);
      const [program, ...args] = command;
      const { code } = await live(program, [...args, leftOut, ...process.argv.slice(2)]);
      if (code !== 0) failed.push(`${test} (${label})`);
    }
  }
  if (failed.length > 0) throw new Error(`failed: ${failed.join(', ')}`);
});
