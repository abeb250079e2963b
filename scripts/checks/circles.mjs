// No file of src/ imports itself by way of others: types count, as what they say is read in a circle too.
import { posix } from 'node:path';

const importPattern = /^(?:import|export)\b[^'"`;]*?(?:from\s*)?['"](\.[^'"]+)\.js['"]/gm;

/** file -> the files of the project that it imports */
function importsOf(files, read) {
  const sources = files.filter((path) => /^src\/.*\.ts$/.test(path));
  const known = new Set(sources);
  return new Map(
    sources.map((path) => {
      const targets = [...read(path).matchAll(importPattern)].map(([, target]) => posix.join(posix.dirname(path), `${target}.ts`)); // prettier-ignore
      return [path, targets.filter((target) => known.has(target))];
    }),
  );
}

export function check(files, read) {
  const imports = importsOf(files, read);
  const problems = [];
  const done = new Set();
  const visit = (path, above) => {
    const start = above.indexOf(path);
    if (start >= 0) problems.push(`${[...above.slice(start), path].join(' -> ')}: imports in a circle`);
    if (start >= 0 || done.has(path)) return;
    for (const target of imports.get(path)) visit(target, [...above, path]);
    done.add(path);
  };
  for (const path of imports.keys()) visit(path, []);
  return problems;
}
