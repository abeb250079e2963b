// Where the project is, and steps that are skipped while nothing they depend on has changed.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository's top folder. */
export const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/[\\/]$/, '');

/** Path inside the repository. */
export const at = (...parts) => join(root, ...parts);

/** One line of progress. */
export const say = (text) => console.log(`> ${text}`);

/** A program of node_modules as the script that node runs, e.g. bin('esbuild/bin/esbuild'). */
export const bin = (path) => at('node_modules', ...path.split('/'));

/** All files below a folder (or the file itself) in a stable order. */
export function filesBelow(path) {
  if (!existsSync(path)) return [];
  const entries = readdirSync(path, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .sort();
}

/** A fingerprint of files' names and contents, and of other facts. */
export function fingerprint(files, ...facts) {
  const hash = createHash('sha256');
  for (const file of files) hash.update(relative(root, file).split(sep).join('/') + '\0').update(readFileSync(file));
  return hash.update(JSON.stringify(facts)).digest('hex');
}

/**
 * Runs `work` unless the stamp file already holds `print`; the stamp is written when the work is done.
 * @returns {Promise<boolean>} whether it ran
 */
export async function unlessDone(stamp, print, work) {
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === print) return false;
  await work();
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, print);
  return true;
}

/** Ends the process with one clear line when `main` fails. */
export function runMain(main) {
  if (helpWasAsked()) return;
  main().catch((error) => {
    console.error(`infernode: ${error.stack && process.env.INFERNODE_DEBUG ? error.stack : error.message}`);
    process.exitCode = 1;
  });
}

/** Prints what stands at the head of the running script, where --help or -h is among the arguments. */
export function helpWasAsked() {
  if (!process.argv.includes('--help') && !process.argv.includes('-h')) return false;
  const lines = readFileSync(process.argv[1], 'utf8').split('\n');
  const head = lines.slice(lines[0].startsWith('#!') ? 1 : 0);
  for (const line of head.slice(
    0,
    head.findIndex((text) => !text.startsWith('//')),
  )) {
    console.log(line.replace(/^\/\/ ?/, ''));
  }
  return true;
}

/** Whether a module is the script that node was started with, by way of a link too. */
export const isMain = (url) =>
  process.argv[1] !== undefined && existsSync(process.argv[1]) && fileURLToPath(url) === realpathSync(process.argv[1]);
