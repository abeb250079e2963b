// The house rules that no compiler knows. Prints each breach and fails when there is one.
import { isMain, runMain } from './lib/project.mjs';
import { projectFiles, read } from './lib/source-files.mjs';

const names = ['includes', 'length', 'options', 'places', 'registration'];

export async function check() {
  const files = await projectFiles();
  let count = 0;
  for (const name of names) {
    const { check: find } = await import(`./checks/${name}.mjs`);
    for (const problem of await find(files, read)) {
      console.error(`${name}: ${problem}`);
      count += 1;
    }
  }
  if (count > 0) throw new Error(`${count} breach${count === 1 ? '' : 'es'} of the house rules`);
  console.log(`house rules: ${files.length} files, none broken`);
}

if (isMain(import.meta.url)) runMain(check);
