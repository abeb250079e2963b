// Runs the native test executables of a CMake build folder and counts their cases.
import { availableParallelism } from 'node:os';
import { live } from './live.mjs';
import { say } from './project.mjs';
import { run } from './run.mjs';

/** name -> command line, as the build folder's CTest knows them. */
async function executables(buildFolder) {
  const listing = JSON.parse(await run('ctest', ['--test-dir', buildFolder, '-C', 'Release', '--show-only=json-v1']));
  return listing.tests.map(({ name, command }) => ({ name, command }));
}

const summary = /\[doctest\] test cases:\s*(\d+) \|\s*(\d+) passed \|\s*(\d+) failed \|\s*(\d+) skipped/;

/**
 * Runs as many executables at a time as there are processors, each of whose output is shown when it has ended.
 * @param {string} buildFolder
 * @param {{ only?: string[], env?: Record<string, string> }} [options] only: the folders' names
 * @returns {Promise<{ passed: number, failed: number, skipped: number }>} a crash counts as one failure
 */
export async function runNativeTests(buildFolder, { only, env } = {}) {
  const total = { passed: 0, failed: 0, skipped: 0 };
  const queue = (await executables(buildFolder)).filter(({ name }) => !only || only.includes(name));
  const worker = async () => {
    for (let test = queue.shift(); test; test = queue.shift()) {
      const { name, command } = test;
      const [program, ...args] = command;
      const { code, output } = await live(program, [...args, '--no-intro=1', '--no-colors=1'], { quiet: true, env });
      say(`native tests: ${name}`);
      process.stdout.write(output);
      const counts = summary.exec(output);
      const failed = counts ? Number(counts[3]) : 1;
      total.passed += counts ? Number(counts[2]) : 0;
      total.failed += code !== 0 && failed === 0 ? 1 : failed;
      total.skipped += counts ? Number(counts[4]) : 0;
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
  return total;
}
