// A folder holds about thirty sources: a larger one is several rooms.
import { posix } from 'node:path';
import { isCpp, isScript } from '../lib/source-files.mjs';

const mostSources = 32;

export function check(files) {
  const counts = new Map();
  for (const path of files.filter((name) => isCpp(name) || isScript(name) || name.endsWith('.py'))) {
    const folder = posix.dirname(path);
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  return [...counts]
    .filter(([, count]) => count > mostSources)
    .map(([folder, count]) => `${folder}: ${count} sources, at most ${mostSources}`);
}
