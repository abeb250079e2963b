// From a bare clone to the text in a picture: install, build, fetch the OCR models, read.
//
// usage: npm run quickstart [-- picture.png|picture.jpg]
import { accessSync, constants } from 'node:fs';
import { resolve } from 'node:path';
import { buildNative, buildTypeScript } from '../scripts/build.mjs';
import { live } from '../scripts/lib/live.mjs';
import { at, runMain, say } from '../scripts/lib/project.mjs';
import { setup } from '../scripts/setup.mjs';

runMain(async () => {
  const pictures = process.argv.slice(2).map((path) => resolve(process.env.INIT_CWD ?? process.cwd(), path));
  if (pictures.length > 1) throw new Error('quickstart reads one picture at a time');
  for (const picture of pictures) accessSync(picture, constants.R_OK); // before minutes of building
  await setup();
  say('the first build takes minutes');
  await buildNative();
  await buildTypeScript();
  say('reading the picture');
  const { code } = await live(process.execPath, [at('examples', 'ocr', 'main.mjs'), ...pictures], {
    cwd: process.env.INIT_CWD, // where the copy of the picture goes
  });
  process.exitCode = code;
});
