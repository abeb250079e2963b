// Writes what follows from src/options/schema.json: types and readers in TypeScript and C++, and docs/options.md.
//
// usage: node scripts/options.mjs
import { writeFileSync } from 'node:fs';
import { at, runMain } from './lib/project.mjs';
import { outputs } from './options/outputs.mjs';
import { loadSchema } from './options/schema.mjs';

runMain(async () => {
  for (const [path, text] of Object.entries(await outputs(loadSchema()))) writeFileSync(at(path), text);
});
