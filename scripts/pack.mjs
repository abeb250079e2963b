// Puts the binary that `npm run build` made where a package has it: prebuilds/<platform>-<arch>/. npm runs this before it packs.
//
// usage: npm pack
import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { at, runMain, say } from './lib/project.mjs';

runMain(async () => {
  const platform = `${process.platform}-${process.arch}`;
  const built = at('build', 'Release', 'infernode.node');
  const shipped = at('prebuilds', platform, 'infernode.node');
  const missing = [at('dist', 'index.cjs'), built].filter((path) => !existsSync(path));
  if (missing.length > 0)
    throw new Error(`a package needs ${missing.join(' and ')}: run \`npm run build\` (or quickstart), then pack again`);
  mkdirSync(join(shipped, '..'), { recursive: true });
  copyFileSync(built, shipped);
  say(`the package has the binary of ${platform}`);
});
