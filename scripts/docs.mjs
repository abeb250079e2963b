// Writes what follows from the sources: pages of docs/, and the site of all pages.
//
// usage: node scripts/docs.mjs api | operators [BUILD_FOLDER] | options | site
//   api         docs/api.md from the declarations of the package, which `npm run build -- --ts` makes in dist/
//   operators   docs/operators.md from what the engine registers; it builds the program that tells in BUILD_FOLDER (build/
//               unless given, which `npm run build` makes)
//   options     what src/options/schema.json says: docs/options.md, types and readers in TypeScript and C++
//   site        build/site/, static HTML: a page for each Markdown file, the README first
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { cmakeBuild } from './lib/live.mjs';
import { at, runMain, say } from './lib/project.mjs';

const writers = {
  async api() {
    const { apiPage } = await import('./lib/api-page.mjs');
    writeFileSync(at('docs', 'api.md'), apiPage());
  },

  async operators(buildFolder = at('build')) {
    const folder = resolve(buildFolder);
    await cmakeBuild(folder, ['--target', 'infernode_operators']);
    const program = join(folder, 'src-native', 'tools', 'infernode_operators');
    writeFileSync(at('docs', 'operators.md'), execFileSync(program, { encoding: 'utf8' }));
  },

  async options() {
    const { outputs } = await import('./options/outputs.mjs');
    const { loadSchema } = await import('./options/schema.mjs');
    for (const [path, text] of Object.entries(await outputs(loadSchema()))) writeFileSync(at(path), text);
  },

  async site() {
    const { writeSite } = await import('./lib/site/site.mjs');
    const out = at('build', 'site');
    const { pages } = writeSite(out);
    say(`${pages.length} pages: open ${join(out, 'index.html')}`);
  },
};

runMain(async () => {
  const [what, ...args] = process.argv.slice(2);
  if (!Object.hasOwn(writers, what ?? '')) throw new Error(`name what to write: ${Object.keys(writers).join(', ')}`);
  await writers[what](...args);
});
