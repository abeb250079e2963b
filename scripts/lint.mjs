// Style and types of all files: eslint, tsc, prettier, clang-format, and clang-tidy on a subset that keeps it quick.
//
// usage: node scripts/lint.mjs [--fix] [--tidy-all] [--no-tidy]
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { clangTool } from './lib/clang-tools.mjs';
import { live } from './lib/live.mjs';
import { at, bin, root, runMain, say } from './lib/project.mjs';
import { isCpp, isNativeSource, projectFiles } from './lib/source-files.mjs';
import { setup } from './setup.mjs';

// Folders whose faults are the most dangerous: what reads files, what owns memory, what meets JavaScript.
const tidyFolders = /^src-native\/(base|tensor|onnx|napi)\/[^/]+\.cpp$/;

async function tidy(files, all) {
  if (!existsSync(at('build', 'compile_commands.json'))) {
    say('clang-tidy needs build/compile_commands.json: run npm run build first');
    return 1;
  }
  const chosen = files.filter(
    (path) => path.endsWith('.cpp') && isNativeSource(path) && (all || tidyFolders.test(path)),
  );
  say(`clang-tidy on ${chosen.length} files`);
  const program = await clangTool('clang-tidy');
  const queue = [...chosen];
  let failures = 0;
  const worker = async () => {
    for (let path = queue.shift(); path; path = queue.shift()) {
      // The build's flags are GCC's; what Clang does not know of them is not a finding.
      const { code } = await live(program, [
        '--quiet',
        '-p',
        at('build'),
        '--extra-arg=-Wno-unknown-warning-option',
        path,
      ]);
      failures += code === 0 ? 0 : 1;
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
  return failures;
}

async function format(files, fix) {
  say('clang-format');
  const program = await clangTool('clang-format');
  if (fix) return (await live(program, ['-i', ...files])).code;
  const { stderr } = spawnSync(program, ['--dry-run', ...files], { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28 });
  const found = new Set([...stderr.matchAll(/^([^:\n]+):\d+:\d+: warning/gm)].map((match) => match[1]));
  for (const path of found) console.error(`${path}: not laid out as .clang-format says`);
  return found.size;
}

runMain(async () => {
  const flags = new Set(process.argv.slice(2));
  const fix = flags.has('--fix');
  await setup();
  const files = await projectFiles();
  const results = {};
  const step = async (name, program, args) => {
    say(name);
    results[name] = (await live(program, args)).code;
  };

  await step('eslint', process.execPath, [bin('eslint/bin/eslint.js'), ...(fix ? ['--fix'] : []), '.']);
  await step('tsc', process.execPath, [bin('typescript/bin/tsc'), '-p', 'tsconfig.json']);
  await step('prettier', process.execPath, [
    bin('prettier/bin/prettier.cjs'),
    '--log-level',
    'warn',
    fix ? '--write' : '--check',
    '.',
  ]);
  const cpp = files.filter((path) => isCpp(path));
  if (cpp.length > 0) results['clang-format'] = await format(cpp, fix);
  if (!fix && !flags.has('--no-tidy')) results['clang-tidy'] = await tidy(files, flags.has('--tidy-all'));

  const failed = Object.keys(results).filter((name) => results[name] !== 0);
  if (failed.length > 0)
    throw new Error(`lint: ${failed.join(', ')} found something (npm run format mends the layout)`);
});
