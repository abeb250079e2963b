// Style and types of all files: eslint, tsc, prettier, clang-format, and clang-tidy: names in all folders, the other checks
// in those where faults are the most dangerous. It takes minutes once, and seconds for what has changed since.
//
// usage: node scripts/lint.mjs [--fix] [--tidy-all] [--tidy-recent] [--no-tidy]
//   --fix          mends what eslint, prettier and clang-format can mend
//   --tidy-all     all checks of clang-tidy in all folders
//   --tidy-recent  names in those files alone that the last 100 commits changed
import { spawnSync } from 'node:child_process';
import { configureNative } from './build.mjs';
import { clangTool } from './lib/clang-tools.mjs';
import { live, must } from './lib/live.mjs';
import { at, bin, root, runMain, say } from './lib/project.mjs';
import { changedFiles, isCpp, projectFiles } from './lib/source-files.mjs';
import { tidy } from './lib/tidy.mjs';
import { setup } from './setup.mjs';

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
  if (!fix && !flags.has('--no-tidy')) {
    await configureNative();
    await must('cmake', [at('build'), '--log-level=WARNING']); // writes the commands that each file is compiled with
    const changed = flags.has('--tidy-recent') ? await changedFiles(100) : undefined;
    results['clang-tidy'] = await tidy(files, { database: at('build'), all: flags.has('--tidy-all'), changed });
  }

  const failed = Object.keys(results).filter((name) => results[name] !== 0);
  if (failed.length > 0)
    throw new Error(`lint: ${failed.join(', ')} found something (npm run format mends the layout)`);
});
