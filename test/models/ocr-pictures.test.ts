import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import jpeg from 'jpeg-js';
import { afterAll, describe, expect, it, type TestContext } from 'vitest';
import { blank, drawText, readPicture, textSize, writePicture } from '../../examples/ocr/image.mjs';
import { exifOrientation, storedPoint, upright } from '../../examples/ocr/orientation.mjs';
import { TextReader } from '../../examples/ocr/reader.mjs';
import { fetchModel, fetchModels } from '../../bench/models/fetch-models.mjs';
import { projectRoot } from '../../scripts/lib/engine.mjs';
import { available } from '../fixtures/available.js';
import { ort, ours } from '../fixtures/engine.js';

const example = join(projectRoot, 'examples', 'ocr');
const expected = readFileSync(join(example, 'expected.txt'), 'utf8').trim().split('\n');
const folder = mkdtempSync(join(tmpdir(), 'infernode-'));
afterAll(() => rmSync(folder, { recursive: true }));

const orientations = [1, 2, 3, 4, 5, 6, 7, 8];
/** Which orientation undoes each: a quarter turn is undone by that to the other side, the others by themselves. */
const inverse = (orientation: number): number => ({ 6: 8, 8: 6 })[orientation] ?? orientation;

/** EXIF data that holds an orientation, in either byte order. */
function exif(orientation: number, little = true): Buffer {
  const tiff = Buffer.alloc(26);
  const write = { short: little ? 'writeUInt16LE' : 'writeUInt16BE', long: little ? 'writeUInt32LE' : 'writeUInt32BE' } as const; // prettier-ignore
  tiff.write(little ? 'II' : 'MM', 'latin1');
  tiff[write.short](42, 2);
  tiff[write.long](8, 4);
  tiff[write.short](1, 8); // entries
  tiff[write.short](0x0112, 10);
  tiff[write.short](3, 12);
  tiff[write.long](1, 14);
  tiff[write.short](orientation, 18);
  return tiff;
}

/** The PNG file with EXIF data behind its header. */
function pngWith(data: Buffer, png: Buffer): Buffer {
  const header = 8 + 12 + 13;
  const chunk = Buffer.alloc(12 + data.length);
  chunk.writeUInt32BE(data.length, 0);
  chunk.write('eXIf', 4, 'latin1');
  data.copy(chunk, 8);
  chunk.writeUInt32BE(crc32(chunk.subarray(4, 8 + data.length)), 8 + data.length);
  return Buffer.concat([png.subarray(0, header), chunk, png.subarray(header)]);
}

/** The JPEG file with EXIF data behind what its first segment holds. */
function jpegWith(data: Buffer, file: Buffer): Buffer {
  const first = 4 + file.readUInt16BE(4);
  const head = Buffer.from([0xff, 0xe1, 0, 8 + data.length]);
  return Buffer.concat([file.subarray(0, first), head, Buffer.from('Exif\0\0', 'latin1'), data, file.subarray(first)]);
}

/** A picture whose pixels all differ: no two of its eight orientations are alike. */
function gradient(width: number, height: number) {
  const picture = blank(width, height);
  for (let i = 0; i < width * height; i++) picture.data.set([(i % width) * 9, Math.floor(i / width) * 9, 60], 3 * i);
  return picture;
}

function jpegOf({ width, height, data }: ReturnType<typeof blank>): Buffer {
  const rgba = new Uint8Array(width * height * 4).fill(255);
  for (let i = 0; i < width * height; i++) rgba.set(data.subarray(3 * i, 3 * i + 3), 4 * i);
  return jpeg.encode({ width, height, data: rgba }, 100).data as unknown as Buffer;
}

describe('EXIF orientation', () => {
  const original = gradient(24, 16);

  it.each(orientations)('%i of a PNG turns it upright', (orientation) => {
    const path = join(folder, 'stored.png');
    writePicture(path, upright(original, inverse(orientation)));
    writeFileSync(path, pngWith(exif(orientation, orientation % 2 === 0), readFileSync(path)));
    expect(readPicture(path)).toEqual(original);
  });

  it.each(orientations)('%i of a JPEG turns it upright', (orientation) => {
    const path = join(folder, 'stored.jpg');
    const file = jpegOf(upright(original, inverse(orientation)));
    writeFileSync(path, jpegWith(exif(orientation, orientation % 2 === 1), file));
    const { width, height, data } = readPicture(path);
    expect([width, height]).toEqual([original.width, original.height]);
    const worst = Math.max(...data.map((value: number, i: number) => Math.abs(value - original.data[i]!)));
    expect(worst).toBeLessThan(12); // what JPEG loses; a wrong turn costs 100 and more
  });

  it('is 1 where none is named or the data is damaged', () => {
    const png = readFileSync(join(example, 'picture.png'));
    const damaged = exif(6);
    damaged.writeUInt32LE(4_000_000_000, 4);
    expect(exifOrientation(png)).toBe(1);
    expect(exifOrientation(pngWith(exif(6), png))).toBe(6);
    expect(exifOrientation(pngWith(exif(9), png))).toBe(1);
    expect(exifOrientation(pngWith(damaged, png))).toBe(1);
    expect(exifOrientation(jpegOf(original).subarray(0, 30))).toBe(1);
  });
});

describe.runIf(ours)('the OCR example', () => {
  let loaded: Promise<TextReader> | undefined;
  afterAll(async () => (await loaded)?.release());

  async function reader(context: TestContext): Promise<TextReader> {
    await available(context, 'the OCR models', () => fetchModels(['ocr']));
    const names = ['ppocr-v4-det', 'ppocr-v6-rec', 'ppocr-cls'];
    const [detector, recogniser, classifier] = (await Promise.all(names.map((name) => fetchModel(name)))) as [string, string, string]; // prettier-ignore
    return (loaded ??= TextReader.load(ort, { detector, recogniser, classifier }));
  }

  /** A white page with one line of text below the other. */
  function pageOf(lines: string[]) {
    const widest = Math.max(...lines.map((line) => textSize(line, 2)[0]!));
    const page = blank(widest + 64, 64 * (lines.length + 1));
    lines.forEach((line, i) => drawText(page, line, 32, 40 + 64 * i, [30, 30, 30], 2));
    return page;
  }
  const textOf = (lines: { text: string }[]) => lines.map(({ text }) => text);

  it.for([
    [90, 8],
    [180, 3],
    [270, 6],
  ] as const)('reads pictures turned by %i degrees as it reads them upright', async ([, orientation], context) => {
    const original = readPicture(join(example, 'picture.png'));
    const turned = upright(original, inverse(orientation));
    const lines = await (await reader(context)).read(turned);
    expect(textOf(lines)).toEqual(expected);
    // The corners are those of the picture as it was given: the title is where the turn has put it.
    const [topLeft] = lines[0]!.corners;
    const [x, y] = storedPoint(topLeft as [number, number], inverse(orientation), original);
    expect(Math.abs(x - 194)).toBeLessThan(4);
    expect(Math.abs(y - 71)).toBeLessThan(4);
  });

  it('reads long lines to their end', async (context) => {
    const line = 'fourteen sailors from Port Ellen count their money and write each sum into a long list of things';
    const long = [line, `${line} ${line} ${line}`];
    expect(textOf(await (await reader(context)).read(pageOf(long)))).toEqual(long);
  });

  it('reads £, which it can also draw', async (context) => {
    const prices = ['Tea £2.50', 'Cake £13.75 or €16.10'];
    expect(textOf(await (await reader(context)).read(pageOf(prices)))).toEqual(prices);
    const drawn = pageOf(['£']);
    expect(drawn).not.toEqual(pageOf(['\u0001'])); // an empty box stands for what the font lacks
  });

  it('names a file of characters where the recogniser carries none', async (context) => {
    await reader(context);
    const [detector, recogniser] = (await Promise.all(['ppocr-v4-det', 'ppocr-v4-rec'].map((name) => fetchModel(name)))) as [string, string]; // prettier-ignore
    await expect(TextReader.load(ort, { detector, recogniser })).rejects.toThrow(/carries no characters/);
  });
});
