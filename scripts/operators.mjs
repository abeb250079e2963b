// Writes docs/operators.md from what the engine registers.
//
// usage: node scripts/operators.mjs [BUILD_FOLDER]     (default: build, which `npm run build` makes)
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { cmakeBuild } from './lib/live.mjs';
import { at, runMain } from './lib/project.mjs';

const head = `# Operators

What the CPU provider runs: each operator with the versions it changed in, and the element types that its newest version takes.
Written by \`node scripts/operators.mjs\`.
`;

runMain(async () => {
  const folder = resolve(process.argv[2] ?? at('build'));
  await cmakeBuild(folder, ['--target', 'infernode_operators']);
  const table = execFileSync(join(folder, 'src-native', 'tools', 'infernode_operators'), { encoding: 'utf8' });
  writeFileSync(at('docs', 'operators.md'), head + table);
});
