// The cases of test/native/ops, run by test_gpu_ops in sessions with the providers cuda and cpu.
import { existsSync, readdirSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { at } from '../../scripts/lib/project.mjs';

const summary = /\[doctest\] test cases:\s*(\d+) \|\s*(\d+) passed \|\s*(\d+) failed/;

/** More processes would wait for each other's turns on the GPU. */
const most = 1;
const limit = 540_000; // milliseconds

/** Filters of source files, each a process's part of the cases. */
function parts(count) {
  const files = readdirSync(at('test', 'native', 'ops'), { recursive: true, encoding: 'utf8' });
  const filters = Array.from({ length: count }, () => []);
  files
    .filter((file) => file.endsWith('.test.cpp'))
    .sort()
    .forEach((file, i) => filters[i % count].push(`*/ops/${file}`));
  return filters.map((list) => list.join(','));
}

function runPart(program, filter) {
  return new Promise((resolve) => {
    const child = spawn(program, [`-sf=${filter}`, '--no-intro=1', '--no-colors=1'], {
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: limit,
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    child.on('error', (error) => resolve({ output: error.message, code: -1 }));
    child.on('close', (code, signal) => resolve({ output, code: signal ?? code }));
  });
}

/** What doctest says of each failed check: the case, the text of the operator, the difference. */
function failuresOf(output, code) {
  const lines = output.split(/^(?=\S+:\d+: (?:FATAL )?ERROR)/m).slice(1);
  const failures = lines.map((text) =>
    text
      .split(/^={10,}$/m)[0]
      .replace(/\s+/g, ' ')
      .slice(0, 700),
  );
  if (!summary.test(output))
    failures.push(`test_gpu_ops ended with ${code}: ${output.slice(-400).replace(/\s+/g, ' ')}`);
  return failures;
}

export async function checkOperators({ tests, jobs }) {
  if (!existsSync(tests)) throw new Error(`${tests} is missing: cmake --build build --target test_gpu_ops`);
  const result = { passed: 0, failures: [], onDevice: {} };
  const work = async (filter) => {
    const { output, code } = await runPart(tests, filter);
    result.passed += Number(summary.exec(output)?.[2] ?? 0);
    result.failures.push(...failuresOf(output, code));
    for (const [, operator, count] of output.matchAll(/^on the device: (\S+) (\d+)$/gm)) {
      result.onDevice[operator] = (result.onDevice[operator] ?? 0) + Number(count);
    }
  };
  await Promise.all(parts(Math.min(jobs, most)).map(work));
  return result;
}
