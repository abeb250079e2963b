// Writes docs/operators.md from what the engine registers.
//
// usage: node scripts/operators.mjs [BUILD_FOLDER]     (default: build, which `npm run build` makes)
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { cmakeBuild } from './lib/live.mjs';
import { at, runMain } from './lib/project.mjs';

runMain(async () => {
  const folder = resolve(process.argv[2] ?? at('build'));
  await cmakeBuild(folder, ['--target', 'infernode_operators']);
  const program = join(folder, 'src-native', 'tools', 'infernode_operators');
  writeFileSync(at('docs', 'operators.md'), execFileSync(program, { encoding: 'utf8' }));
});
