// From a bare clone to the text in a picture: install, build, fetch the OCR models, read.
//
// usage: npm run quickstart [-- picture.png|picture.jpg]
import { resolve } from 'node:path';
import { buildNative, buildTypeScript } from './build.mjs';
import { live } from './lib/live.mjs';
import { at, runMain, say } from './lib/project.mjs';
import { setup } from './setup.mjs';

runMain(async () => {
  const pictures = process.argv.slice(2).map((path) => resolve(process.env.INIT_CWD ?? process.cwd(), path));
  await setup();
  await buildNative();
  await buildTypeScript();
  say('reading the picture');
  const { code } = await live(process.execPath, [at('examples', 'ocr', 'main.mjs'), ...pictures]);
  process.exitCode = code;
});
