// Checks the binaries that `npm run prebuild` made: what each file says of itself, and, where this machine can run it, what
// it computes, beside the checkout's own build. One line for each check; what was not run says why.
//
// usage: npm run verify:prebuilds [-- --all | --platform <name>...] [--static] [--tests]
//   --static   only what the files say
//   --tests    also this machine's platform through the unit tests and the ONNX backend suite
//
// Without names, all that are built. A name that is not built is an error.
import { mkdtempSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { complaintsAbout } from './lib/binary/checks.mjs';
import { waysToRun } from './lib/foreign-node.mjs';
import { live } from './lib/live.mjs';
import { fetchModel } from './lib/models.mjs';
import { chosenPlatforms, platforms, prebuilt } from './lib/platforms.mjs';
import { at, bin, isMain, root, runMain } from './lib/project.mjs';
import { run } from './lib/run.mjs';
import { zigFolder } from './lib/zig.mjs';

/** The program of test/prebuilds as one file. */
async function bundled(folder) {
  const { build } = await import('esbuild');
  const outfile = join(folder, 'program.cjs');
  await build({
    entryPoints: [at('test', 'prebuilds', 'program.ts')],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20',
    logLevel: 'warning',
  });
  return outfile;
}

/** Networks of real packages: convolutions of pictures and of sound, an embedding of a file's bytes. */
const networks = ['detypify', 'basic-pitch', 'speech-embedding', 'magika'];

/** What the program answers with a binary. */
async function answersOf(program, binary, { command, env }) {
  const report = join(program, '..', 'report.json');
  rmSync(report, { force: true });
  const [first, ...rest] = command;
  const paths = await Promise.all(networks.map((name) => fetchModel(name)));
  await run(first, [...rest, program, root, report, ...paths], { env: { ...env, INFERNODE_BINARY: binary } });
  const said = JSON.parse(readFileSync(report, 'utf8'));
  if (said.error !== undefined) throw new Error(said.error);
  return said;
}

/** Where answers lie further from the expected ones than other orders of summing explain. */
export function differences(expected, actual) {
  const among = (ours, theirs = {}, most) =>
    Object.keys(ours).filter((name) => {
      const [wanted, got] = [ours[name], theirs[name] ?? []];
      const largest = wanted.reduce((so, value) => Math.max(so, Math.abs(value)), 0);
      const near = (value, i) => Math.abs(value - got[i]) <= most * largest;
      return wanted.length === 0 || wanted.length !== got.length || !wanted.every(near);
    });
  const { answers, networks = {} } = expected;
  return [...among(answers, actual.answers, 1e-5), ...among(networks, actual.networks, 1e-4)];
}

async function runOn(platform, program, expected, line) {
  const { ways = [], missing } = await waysToRun(platform);
  if (missing !== undefined) line('not run', missing);
  for (const way of ways) {
    try {
      const actual = await answersOf(program, prebuilt(platform), way);
      const wrong = differences(expected, actual);
      if (actual.refusal !== expected.refusal) wrong.push(`a damaged model is refused with ${actual.refusal}`);
      const count = Object.keys(expected.answers).length + networks.length;
      line(
        wrong.length > 0 ? 'FAILED' : 'passed',
        `${way.label}: ${wrong.join(', ') || `${count} models agree with this checkout's build`}`,
      );
    } catch (error) {
      line('FAILED', `${way.label}: ${error.message}`);
    }
  }
}

async function runTests(platform, line) {
  const env = { INFERNODE_BINARY: prebuilt(platform) };
  const tests = [
    ['unit tests', [bin('vitest/vitest.mjs'), 'run', 'test/unit']],
    ['ONNX backend suite', [at('scripts', 'conformance.mjs')]],
  ];
  for (const [name, args] of tests) {
    const { code } = await live(process.execPath, args, { env });
    line(code === 0 ? 'passed' : 'FAILED', name);
  }
}

async function main(args) {
  const flags = ['--static', '--tests'];
  const names = args.filter((arg) => !flags.includes(arg));
  const chosen =
    names.length > 0 ? chosenPlatforms(names) : platforms.filter((platform) => existsSync(prebuilt(platform)));
  if (chosen.length === 0) throw new Error('no binary is there: run  npm run prebuild -- --all');
  const folder = mkdtempSync(join(tmpdir(), 'infernode-prebuilds-'));
  let failed = 0;
  try {
    const zig = await zigFolder();
    const program = args.includes('--static') ? undefined : await bundled(folder);
    const own = join(at('build', 'Release'), 'infernode.node');
    const expected = program && (await answersOf(program, own, { command: [process.execPath] }));
    for (const platform of chosen) {
      const line = (outcome, what) => {
        if (outcome === 'FAILED') ++failed;
        console.log(`${platform.name.padEnd(17)} ${outcome.padEnd(8)} ${what}`);
      };
      if (!existsSync(prebuilt(platform))) {
        line('FAILED', `is not built: run  npm run prebuild -- --platform ${platform.name}`);
        continue;
      }
      const data = readFileSync(prebuilt(platform));
      const complaints = complaintsAbout(data, platform, zig);
      for (const complaint of complaints) line('FAILED', `the file ${complaint}`);
      if (complaints.length === 0) line('passed', `the file, ${(data.length / 1e6).toFixed(1)} MB`);
      if (program !== undefined) await runOn(platform, program, expected, line);
      if (args.includes('--tests') && platform.name === `${process.platform}-${process.arch}`)
        await runTests(platform, line);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  if (failed > 0) throw new Error(`${failed} checks of prebuilt binaries failed`);
}

if (isMain(import.meta.url)) runMain(() => main(process.argv.slice(2)));
