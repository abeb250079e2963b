// Pictures as { width, height, data }: 8-bit RGB, three bytes a pixel, row by row.
import { readFileSync, writeFileSync } from 'node:fs';
import jpeg from 'jpeg-js';
import { PNG } from 'pngjs';
import { exifOrientation, upright } from './orientation.mjs';

const glyphs = JSON.parse(readFileSync(new URL('./glyphs.json', import.meta.url), 'utf8'));
const glyphWidth = 8;
const glyphHeight = 16;

export const blank = (width, height, grey = 255) => ({
  width,
  height,
  data: new Uint8Array(width * height * 3).fill(grey),
});

const formats = [
  { name: 'PNG', start: '\x89PNG', decode: (bytes) => PNG.sync.read(bytes) },
  {
    name: 'JPEG',
    start: '\xff\xd8',
    decode: (bytes) => jpeg.decode(bytes, { useTArray: true, maxMemoryUsageInMB: 2048 }),
  },
];

/** RGBA pixels as they are stored, and the orientation that turns them upright. */
function decodePicture(path) {
  let bytes;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    throw new Error(`cannot read ${path}: ${error.message}`);
  }
  const format = formats.find(({ start }) => bytes.toString('latin1', 0, start.length) === start);
  if (!format) throw new Error(`${path} is neither a PNG nor a JPEG picture`);
  try {
    return { ...format.decode(bytes), orientation: exifOrientation(bytes) };
  } catch (error) {
    throw new Error(`${path} is a ${format.name} picture that is damaged or incomplete`, { cause: error });
  }
}

/** Reads a PNG or JPEG file, turned as its EXIF data says; transparent parts become white. */
export function readPicture(path) {
  const { width, height, data, orientation } = decodePicture(path);
  const picture = blank(width, height);
  for (let from = 0, to = 0; to < picture.data.length; from += 4, to += 3) {
    const alpha = data[from + 3] / 255;
    for (let c = 0; c < 3; c++) picture.data[to + c] = Math.round(255 + (data[from + c] - 255) * alpha);
  }
  return upright(picture, orientation);
}

/** Writes a PNG file. */
export function writePicture(path, { width, height, data }) {
  const png = new PNG({ width, height, colorType: 2, inputHasAlpha: false });
  png.data = Buffer.from(data);
  writeFileSync(path, PNG.sync.write(png, { colorType: 2, inputColorType: 2, inputHasAlpha: false }));
}

/**
 * Samples a parallelogram of the picture into `width` x `height` points, bilinearly, averaging where it shrinks.
 * `origin` is its top left corner, `right` and `down` are its edges from there, all as [x, y] in pixels.
 * @returns {Float32Array} RGB values from 0 to 255, three a point, row by row
 */
export function sample(picture, origin, right, down, width, height) {
  const { data, width: w, height: h } = picture;
  const out = new Float32Array(width * height * 3);
  const stepsX = Math.max(1, Math.round(Math.hypot(...right) / width));
  const stepsY = Math.max(1, Math.round(Math.hypot(...down) / height));
  const share = 1 / (stepsX * stepsY);
  const add = (x, y, weight, at) => {
    const from = (y * w + x) * 3;
    for (let c = 0; c < 3; c++) out[at + c] += data[from + c] * weight;
  };
  for (let i = 0, at = 0; i < height; i++) {
    for (let j = 0; j < width; j++, at += 3) {
      for (let s = 0; s < stepsX * stepsY; s++) {
        const u = (j + ((s % stepsX) + 0.5) / stepsX) / width;
        const v = (i + (Math.floor(s / stepsX) + 0.5) / stepsY) / height;
        const x = Math.min(Math.max(origin[0] + u * right[0] + v * down[0] - 0.5, 0), w - 1);
        const y = Math.min(Math.max(origin[1] + u * right[1] + v * down[1] - 0.5, 0), h - 1);
        const x0 = Math.floor(x);
        const y0 = Math.floor(y);
        const x1 = Math.min(x0 + 1, w - 1);
        const y1 = Math.min(y0 + 1, h - 1);
        const fx = x - x0;
        const fy = y - y0;
        add(x0, y0, (1 - fx) * (1 - fy) * share, at);
        add(x1, y0, fx * (1 - fy) * share, at);
        add(x0, y1, (1 - fx) * fy * share, at);
        add(x1, y1, fx * fy * share, at);
      }
    }
  }
  return out;
}

function setPixel({ width, height, data }, x, y, colour) {
  if (x >= 0 && y >= 0 && x < width && y < height) data.set(colour, (y * width + x) * 3);
}

/** Copies `source` into `picture` with its top left corner at (left, top). */
export function paste(picture, source, left, top) {
  for (let y = 0; y < source.height; y++) {
    const row = source.data.subarray(y * source.width * 3, (y + 1) * source.width * 3);
    picture.data.set(row, ((top + y) * picture.width + left) * 3);
  }
}

/** Draws a closed outline, two pixels thick. */
export function drawOutline(picture, points, colour) {
  points.forEach(([x0, y0], i) => {
    const [x1, y1] = points[(i + 1) % points.length];
    const steps = Math.ceil(Math.max(Math.abs(x1 - x0), Math.abs(y1 - y0), 1));
    for (let s = 0; s <= steps; s++) {
      const x = Math.round(x0 + ((x1 - x0) * s) / steps);
      const y = Math.round(y0 + ((y1 - y0) * s) / steps);
      for (const [dx, dy] of [
        [0, 0],
        [1, 0],
        [0, 1],
        [1, 1],
      ])
        setPixel(picture, x + dx, y + dy, colour);
    }
  });
}

/** Pixels that `drawText` needs for a text. */
export const textSize = (text, scale = 1) => [[...text].length * glyphWidth * scale, glyphHeight * scale];

/** Writes one line of text; a character that `glyphs.json` lacks is drawn as an empty box. */
export function drawText(picture, text, left, top, colour, scale = 1) {
  [...text].forEach((character, index) => {
    if (character === ' ') return;
    const rows = glyphs[character] ?? '0000007e4242424242424242427e0000';
    for (let y = 0; y < glyphHeight * scale; y++) {
      const row = parseInt(rows.substr(2 * Math.floor(y / scale), 2), 16);
      for (let x = 0; x < glyphWidth * scale; x++) {
        if ((row >> (glyphWidth - 1 - Math.floor(x / scale))) & 1) {
          setPixel(picture, left + index * glyphWidth * scale + x, top + y, colour);
        }
      }
    }
  });
}
