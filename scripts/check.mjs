// The house rules that no compiler knows. Prints each breach and fails when there is one. scripts/checks/known.json lists
// the files that break a rule of size still: it only gets shorter.
//
// usage: npm run check
import { readFileSync } from 'node:fs';
import { at, isMain, runMain } from './lib/project.mjs';
import { projectFiles, read } from './lib/source-files.mjs';

const names = [
  'circles',
  'docstrings',
  'folders',
  'functions',
  'includes',
  'length',
  'options',
  'places',
  'registration',
  'standard',
];

/** Breaches that are not known, and known ones that are mended. */
function judge(problems, known) {
  const broken = new Set(problems.map((problem) => problem.slice(0, problem.indexOf(':'))));
  return [
    ...problems.filter((problem) => !known.includes(problem.slice(0, problem.indexOf(':')))),
    ...known.filter((path) => !broken.has(path)).map((path) => `${path}: mended, so scripts/checks/known.json lists it no more`),
  ]; // prettier-ignore
}

export async function check() {
  const files = await projectFiles();
  const known = JSON.parse(readFileSync(at('scripts', 'checks', 'known.json'), 'utf8'));
  let count = 0;
  for (const name of names) {
    const { check: find } = await import(`./checks/${name}.mjs`);
    for (const problem of judge(await find(files, read), known[name] ?? [])) {
      console.error(`${name}: ${problem}`);
      count += 1;
    }
  }
  if (count > 0) throw new Error(`${count} breach${count === 1 ? '' : 'es'} of the house rules`);
  console.log(`house rules: ${files.length} files, none broken`);
}

if (isMain(import.meta.url)) runMain(check);
