// The files that the project tracks or is about to, by kind.
import { existsSync, readFileSync } from 'node:fs';
import { at, root } from './project.mjs';
import { run } from './run.mjs';

/** Paths, relative to the root with forward slashes, of the tracked files and of new ones that git does not ignore. */
export async function projectFiles() {
  const listing = await run('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root });
  return [...new Set(listing.split('\0'))].filter((path) => path && existsSync(at(path))).sort();
}

/** The tracked files that the last `commits` commits changed. */
export async function changedFiles(commits) {
  const log = await run('git', ['log', `--max-count=${commits}`, '--name-only', '--format=', '-z'], { cwd: root });
  return new Set(log.split(/[\0\n]/).filter((path) => path && existsSync(at(path))));
}

/** A file's text, one character a byte. */
export const read = (path) => readFileSync(at(path), 'latin1');

export const isCpp = (path) => /\.(cpp|h|hpp|mm|cu|cuh|inc)$/.test(path);
export const isScript = (path) => /\.(ts|mts|cts|js|mjs|cjs)$/.test(path);
export const isPython = (path) => path.endsWith('.py');
export const isNativeSource = (path) => isCpp(path) && /^(src-native|providers)\//.test(path);
