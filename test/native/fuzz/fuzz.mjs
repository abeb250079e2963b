// Changes models at random and loads and runs them under AddressSanitizer and UndefinedBehaviorSanitizer. Whatever they
// say must end in an answer or an error: no crash, leak, hang or allocation that nothing has checked.
//
// usage: npm run fuzz -- [--count models] [--hours hours] [--seed n] [--models folder] [--processes n]
//
// Without a count or a time it goes on until it is stopped. A seed fixes all that a round does, so  --seed n --count 1
// plays round n again. Rounds take the seed given and those after it; without one every second round is the same at each
// run of this program, and the others are new ones, drawn from the clock. Models that did harm, and what was said, are
// kept in build/fuzz: seed-<n>.model is the model that a round ended with, seed-<n>.model.<m> are those whose outcome
// was wrong.
import { spawn } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { cmakeBuild, must } from '../../../scripts/lib/live.mjs';
import { at, runMain, say } from '../../../scripts/lib/project.mjs';
import { setup } from '../../../scripts/setup.mjs';

/** What one process does before the next starts: [test case, INFERNODE_FUZZ_COUNT]. */
const rounds = [
  ['changed models end*', 6000],
  ['changed models in ORT*', 6000],
  ['operators meet*', 3],
  ['written cases*', 6000],
  ['changed models end*', 6000],
  ['torn models*', 6000],
  ['changed images*', 60000],
];
/** A round takes seconds, minutes on a busy machine. */
const roundLimit = 10 * 60_000;
/** A fault in every round would never end. */
const faultLimit = 20;
const environment = {
  // No model needs so much at once (trial.cpp watches the sum): larger requests come from numbers that nothing has
  // checked. Short stacks and a small quarantine: models are many and small.
  ASAN_OPTIONS: 'max_allocation_size_mb=96:hard_rss_limit_mb=4096:malloc_context_size=8:quarantine_size_mb=32',
  UBSAN_OPTIONS: 'print_stacktrace=1',
};
const outcome = /refused (\d+), failed (\d+), ran (\d+)/g;

/** @returns {Promise<{ refused: number, failed: number, ran: number, fault?: string, output: string }>} */
function play(program, [testCase, count], { seed, models, last }) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, [`--test-case=${testCase}`, '--no-intro=1', '--no-colors=1'], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...process.env,
        ...environment,
        INFERNODE_FUZZ_COUNT: String(count),
        INFERNODE_FUZZ_SEED: String(seed),
        INFERNODE_FUZZ_LAST: last,
        ...(models && { INFERNODE_FUZZ_MODELS: models }),
      },
    });
    let output = '';
    child.stdout.on('data', (chunk) => (output += chunk));
    child.stderr.on('data', (chunk) => (output += chunk));
    let hung = false;
    const watch = setTimeout(() => {
      hung = true;
      child.kill('SIGKILL');
    }, roundLimit);
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearTimeout(watch);
      const sums = { refused: 0, failed: 0, ran: 0 };
      for (const [, refused, failed, ran] of output.matchAll(outcome)) {
        sums.refused += Number(refused);
        sums.failed += Number(failed);
        sums.ran += Number(ran);
      }
      const ended = hung ? 'it hung' : signal ? `ended by ${signal}` : code !== 0 ? `exit code ${code}` : undefined;
      resolve({ ...sums, fault: ended, output });
    });
  });
}

runMain(async () => {
  const { values } = parseArgs({
    options: {
      count: { type: 'string' },
      hours: { type: 'string' },
      seed: { type: 'string' },
      models: { type: 'string' },
      processes: { type: 'string', default: String(availableParallelism()) },
    },
  });
  const number = (key, fallback) => {
    if (values[key] === undefined) return fallback;
    const value = Number(values[key]);
    if (!(value > 0)) throw new Error(`--${key} takes a number above 0, got '${values[key]}'`);
    return value;
  };
  const wanted = number('count', Infinity);
  const deadline = Date.now() + number('hours', Infinity) * 3_600_000;

  await setup({ tests: true });
  const build = at('build', 'asan-ubsan');
  await must('cmake', ['--preset', 'asan-ubsan']);
  await cmakeBuild(build, ['--target', 'test_fuzz']);
  const folder = at('build', 'fuzz');
  mkdirSync(folder, { recursive: true });

  const begin = Date.now();
  const total = { refused: 0, failed: 0, ran: 0 };
  const tried = () => total.refused + total.failed + total.ran;
  const faults = [];
  const fresh = values.seed === undefined ? Math.floor(begin / 1000) % 2 ** 31 : undefined;
  let next = number('seed', 1);
  let played = 0;
  const nextSeed = () => {
    const old = fresh === undefined || played % 2 === 0;
    const seed = old ? next : fresh + next;
    if (fresh === undefined || !old) next += 1;
    played += 1;
    return seed;
  };
  if (fresh !== undefined) say(`fuzz: seeds from 1 on, and new ones from ${fresh + 1} on`);
  let told = begin;
  const summary = () => {
    const seconds = Math.max(1, Math.round((Date.now() - begin) / 1000));
    const { refused, failed, ran } = total;
    return `${tried()} models, ${faults.length} faults (refused ${refused}, failed ${failed}, ran ${ran}) in ${seconds} s`;
  };
  const work = async () => {
    while (tried() < wanted && Date.now() < deadline && faults.length < faultLimit) {
      const seed = nextSeed();
      const last = `${folder}/seed-${seed}.model`;
      const result = await play(`${build}/test_fuzz`, rounds[seed % rounds.length], { ...values, seed, last });
      for (const key of Object.keys(total)) total[key] += result[key];
      if (result.fault) {
        faults.push(seed);
        writeFileSync(`${folder}/seed-${seed}.txt`, result.output);
        console.error(
          `fuzz: seed ${seed}: ${result.fault}; see ${last}*, again with --seed ${seed} --count 1\n${result.output.slice(0, 4000)}`,
        );
        continue;
      }
      if (result.refused + result.failed + result.ran === 0) {
        throw new Error(`seed ${seed} tried no model: ${result.output.slice(-500)}`);
      }
      rmSync(last, { force: true });
      if (Date.now() - told > 60_000) {
        told = Date.now();
        say(`fuzz: ${summary()}`);
      }
    }
  };
  await Promise.all(Array.from({ length: number('processes', 1) }, work));
  say(`fuzz: ${summary()}`);
  if (faults.length > 0) throw new Error(`fuzz: faults with the seeds ${faults.join(', ')}; see ${folder}`);
});
