// Checks the binaries that `npm run prebuild` made: what each file says of itself, and, where this machine can run it, what
// it computes, beside the checkout's own build. One line for each check; what was not run says why.
//
// usage: npm run verify:prebuilds [-- --all | --platform <name>...] [--static] [--tests]
//   --static   only what the files say
//   --tests    also the ONNX backend suite, and on this machine's platform the unit tests; under an emulator all cases but
//              whole networks as its first processor, and each 16th as the others
//
// Without names, all that are built. A name that is not built is an error.
import { mkdtempSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { vectorShares } from './lib/binary/arm-loops.mjs';
import { complaintsAbout } from './lib/binary/checks.mjs';
import { waysToRun } from './lib/foreign-node.mjs';
import { live } from './lib/live.mjs';
import { fetchModel } from './lib/models.mjs';
import { chosenPlatforms, platforms, prebuilt, workFolder } from './lib/platforms.mjs';
import { at, bin, isMain, root, runMain } from './lib/project.mjs';
import { run } from './lib/run.mjs';
import { zigFolder } from './lib/zig.mjs';
import { suiteFolder } from '../test/conformance/lib/suite.mjs';

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

const minutes = 60_000;

/** Of the arithmetic in a file's loops, how much is by vectors at least: the rest are ends of rows, and single windows. */
const leastShare = 0.6;
const percent = (share) => `${Math.floor(100 * share)} %`;

/** What a program of test/prebuilds reports that runs with a binary. */
async function reportOf(program, args, folder, binary, { command, env }) {
  const report = join(folder, 'report.json');
  rmSync(report, { force: true });
  const [first, ...rest] = command;
  const said = () => JSON.parse(readFileSync(report, 'utf8'));
  try {
    await run(first, [...rest, program, ...args(report)], {
      env: { ...env, INFERNODE_BINARY: binary },
      timeout: 60 * minutes,
    });
  } catch (error) {
    if (existsSync(report)) error.message = `during ${said().during}: ${error.message}`;
    throw error;
  }
  return said();
}

/** What the program answers with a binary. */
async function answersOf(program, binary, way) {
  const paths = await Promise.all(networks.map((name) => fetchModel(name)));
  const said = await reportOf(program, (report) => [root, report, ...paths], dirname(program), binary, way);
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

/** The unit tests, by which a platform is tested that is this machine's. */
async function runUnitTests(platform, line) {
  const args = [bin('vitest/vitest.mjs'), 'run', 'test/unit'];
  const { code } = await live(process.execPath, args, { env: { INFERNODE_BINARY: prebuilt(platform) } });
  line(code === 0 ? 'passed' : 'FAILED', 'unit tests');
}

/** The ONNX backend suite in each way. */
async function runSuite(platform, folder, line) {
  const { ways = [] } = await waysToRun(platform);
  const program = at('test', 'prebuilds', 'conformance.mjs');
  for (const [i, way] of ways.entries()) {
    const every = i === 0 ? 1 : 16;
    const which = way.slow ? ` without its networks${every === 1 ? '' : `, each ${every}th case`}` : '';
    const name = `${way.label}: ONNX backend suite${which}`;
    try {
      const suite = await suiteFolder();
      const args = (report) => [suite, report, ...(way.slow ? [every] : [])];
      const { outcomes } = await reportOf(program, args, folder, prebuilt(platform), way);
      const count = (outcome) => outcomes.filter((one) => one.outcome === outcome).length;
      const failed = outcomes.filter(({ outcome }) => outcome === 'failed');
      const counts = `${count('passed')} passed, ${failed.length} failed, ${count('not implemented')} not implemented`;
      line(failed.length > 0 || count('passed') === 0 ? 'FAILED' : 'passed', `${name}: ${counts}`);
      for (const { name: wrong, reason } of failed) line('FAILED', `  ${wrong}: ${reason}`);
    } catch (error) {
      line('FAILED', `${name}: ${error.message}`);
    }
  }
}

/** Whether loops for arm64 compute by vectors: of the objects that the binary was linked of. */
function inspectLoops(platform, line) {
  const objects = join(workFolder(platform), 'build', 'src-native', 'microkernels', 'CMakeFiles');
  if (platform.os !== 'linux' || platform.cpu !== 'arm64') return;
  const targets = existsSync(objects) ? readdirSync(objects).filter((name) => name.startsWith('infernode_loops_')) : [];
  if (targets.length === 0) return line('not run', 'inspection of its loops: the objects are not there');
  const shares = targets.flatMap((target) => vectorShares(join(objects, target)));
  const least = shares.reduce((a, b) => (b.share < a.share ? b : a));
  for (const { file, share } of shares.filter((one) => one.share < leastShare))
    line('FAILED', `loops of ${file} compute ${percent(share)} by vectors`);
  if (least.share >= leastShare)
    line(
      'passed',
      `loops of ${shares.length} files compute by vectors, ${percent(least.share)} of ${least.file} the least`,
    );
}

/** What is known of one binary, a line for each check. */
async function verify(platform, { zig, program, expected, tests, folder }, line) {
  if (!existsSync(prebuilt(platform)))
    return line('FAILED', `is not built: run  npm run prebuild -- --platform ${platform.name}`);
  const data = readFileSync(prebuilt(platform));
  const complaints = complaintsAbout(data, platform, zig);
  for (const complaint of complaints) line('FAILED', `the file ${complaint}`);
  if (complaints.length === 0) line('passed', `the file, ${(data.length / 1e6).toFixed(1)} MB`);
  inspectLoops(platform, line);
  if (program !== undefined) await runOn(platform, program, expected, line);
  if (!tests) return;
  await runSuite(platform, folder, line);
  if (platform.name === `${process.platform}-${process.arch}`) await runUnitTests(platform, line);
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
    const tests = args.includes('--tests');
    for (const platform of chosen) {
      await verify(platform, { zig, program, expected, tests, folder }, (outcome, what) => {
        if (outcome === 'FAILED') ++failed;
        console.log(`${platform.name.padEnd(17)} ${outcome.padEnd(8)} ${what}`);
      });
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  if (failed > 0) throw new Error(`${failed} checks of prebuilt binaries failed`);
}

if (isMain(import.meta.url)) runMain(() => main(process.argv.slice(2)));
