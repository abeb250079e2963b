#!/usr/bin/env node
// Reads the text in a picture and prints each line with its box and confidence.
//
// usage: node examples/ocr/main.mjs [PICTURE]       (a PNG or JPEG file; none: the one that lies here)
//
// Writes NAME-read.png (NAME.jpg-read.png of a JPEG) into the current folder: the picture with its boxes numbered, and
// beside it the lines.
import { basename, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fetchModel, fetchModels } from '../../bench/models/fetch-models.mjs';
import { loadEngine } from '../../scripts/lib/engine.mjs'; // in a program of yours: import * as ort from 'infernode'
import { helpWasAsked } from '../../scripts/lib/project.mjs';
import { blank, drawOutline, drawText, paste, readPicture, textSize, writePicture } from './image.mjs';
import { TextReader } from './reader.mjs';

const ink = [200, 30, 40];

/** The picture with numbered boxes, and a list of the lines to the right of it. */
function annotate(picture, lines) {
  const listing = lines.map(
    ({ text, confidence }, i) => `${String(i + 1).padStart(2)}  ${confidence.toFixed(2)}  ${text}`,
  );
  const scale = picture.height > 1600 ? 2 : 1;
  const margin = 16 * scale;
  const row = 22 * scale;
  const panel = Math.max(200, ...listing.map((text) => textSize(text, scale)[0])) + 2 * margin;
  const page = blank(picture.width + panel, Math.max(picture.height, listing.length * row + 2 * margin));
  paste(page, picture, 0, 0);
  lines.forEach(({ corners }, i) => {
    drawOutline(page, corners, ink);
    const number = String(i + 1);
    const [left, top] = corners[0];
    drawText(page, number, Math.max(0, left - textSize(number, scale)[0] - 3), Math.max(0, top), ink, scale);
  });
  listing.forEach((text, i) => drawText(page, text, picture.width + margin, margin + i * row, [30, 30, 30], scale));
  return page;
}

const milliseconds = (value) => `${value.toFixed(0)} ms`;

async function main() {
  const unknown = process.argv.slice(2).find((arg) => arg.startsWith('-'));
  if (unknown) throw new Error(`unknown option '${unknown}'; --help says what there is`);
  if (process.argv.length > 3) throw new Error('it reads one picture at a time');
  const path = process.argv[2] ? resolve(process.argv[2]) : fileURLToPath(new URL('./picture.png', import.meta.url));
  const picture = readPicture(path);
  await fetchModels(['ocr']);
  const [detector, recogniser, classifier] = await Promise.all(
    ['ppocr-v4-det', 'ppocr-v6-rec', 'ppocr-cls'].map(fetchModel),
  );

  const started = performance.now();
  const reader = await TextReader.load(await loadEngine(), { detector, recogniser, classifier });
  const loaded = performance.now();
  const lines = await reader.read(picture);
  const finished = performance.now();
  await reader.release();

  const row = (confidence, corners, text) => `${confidence.padEnd(10)}  ${corners.padEnd(36)}  ${text}`;
  if (lines.length) console.log(row('confidence', 'corners (x,y from the top left)', 'text'));
  for (const { text, confidence, corners } of lines) {
    console.log(row(confidence.toFixed(2), corners.map((point) => point.join(',')).join(' '), text));
  }
  const copy = resolve(`${basename(path, '.png')}-read.png`);
  writePicture(copy, annotate(picture, lines));
  console.log(
    `\n${lines.length} ${lines.length === 1 ? 'line' : 'lines'} in ${process.argv[2] ?? relative(process.cwd(), path)}; annotated copy: ${relative(process.cwd(), copy)}`,
  );
  console.log(`loading took ${milliseconds(loaded - started)}, reading ${milliseconds(finished - loaded)}`);
}

try {
  if (!helpWasAsked()) await main();
} catch (error) {
  console.error(`ocr: ${error.message}`);
  process.exitCode = 1;
}
