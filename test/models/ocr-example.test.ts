import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import jpeg from 'jpeg-js';
import { afterAll, describe, expect, it } from 'vitest';
import { smallestRectangle, textBoxes } from '../../examples/ocr/boxes.mjs';
import { readPicture } from '../../examples/ocr/image.mjs';
import { fetchModels } from '../../bench/models/fetch-models.mjs';
import { projectRoot } from '../../scripts/lib/engine.mjs';
import { available } from '../fixtures/available.js';
import { ours } from '../fixtures/engine.js';

const example = join(projectRoot, 'examples', 'ocr');
const folder = mkdtempSync(join(tmpdir(), 'infernode-'));
afterAll(() => rmSync(folder, { recursive: true }));

const read = (...args: string[]) =>
  spawnSync(process.execPath, [join(example, 'main.mjs'), ...args], { cwd: folder, encoding: 'utf8' });
/** The text of each printed line: confidence, four corners, text. */
const linesOf = (stdout: string) =>
  [...stdout.matchAll(/^[01]\.\d\d {8}(?:-?\d+,-?\d+ +){4} *(.+)$/gm)].map((match) => match[1]);

describe.runIf(ours)('the example that reads a picture', () => {
  const expected = readFileSync(join(example, 'expected.txt'), 'utf8').trim().split('\n');

  it('prints the lines of its own picture and writes an annotated copy', async (context) => {
    await available(context, 'the OCR models', () => fetchModels(['ocr']));
    const { status, stdout, stderr } = read();
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(linesOf(stdout)).toEqual(expected);
    expect(stdout).toMatch(/^confidence +corners \(x,y from the top left\) +text\n1\.00 +\d+,\d+ /); // over each column
    expect(stdout).toMatch(/loading took \d+ ms, reading \d+ ms/);
    const original = readPicture(join(example, 'picture.png'));
    const copy = readPicture(join(folder, 'picture-read.png'));
    expect(copy.height).toBeGreaterThanOrEqual(original.height);
    expect(copy.width).toBeGreaterThan(original.width); // the list of lines stands beside it
    const at = (picture: typeof copy, x: number, y: number) => [
      ...picture.data.subarray((y * picture.width + x) * 3, (y * picture.width + x) * 3 + 3),
    ];
    expect(at(copy, 5, 5)).toEqual(at(original, 5, 5));
  });

  it('reads a JPEG', async (context) => {
    await available(context, 'the OCR models', () => fetchModels(['ocr']));
    const { width, height, data } = readPicture(join(example, 'picture.png'));
    const rgba = new Uint8Array(width * height * 4).fill(255);
    for (let i = 0; i < width * height; i++) rgba.set(data.subarray(3 * i, 3 * i + 3), 4 * i);
    writeFileSync(join(folder, 'photo.jpg'), jpeg.encode({ width, height, data: rgba }, 90).data);
    const { status, stdout } = read('photo.jpg');
    expect(status).toBe(0);
    // Compression noise costs this recogniser some spaces, whatever engine runs it, but no character.
    const solid = (lines: (string | undefined)[]) => lines.map((line) => line!.replaceAll(' ', ''));
    expect(solid(linesOf(stdout))).toEqual(solid(expected));
    expect(existsSync(join(folder, 'photo.jpg-read.png'))).toBe(true);
  });

  it.each(['--help', '-h'])('says how it is used: %s', (option) => {
    const { status, stdout, stderr } = read(option);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toContain('usage: node examples/ocr/main.mjs [PICTURE]');
  });

  it('refuses options that it does not have', () => {
    const { status, stderr } = read('--langs');
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: "ocr: unknown option '--langs'; --help says what there is\n",
    });
  });

  it('says what is wrong with a file that is no picture', () => {
    writeFileSync(join(folder, 'notes.txt'), 'no picture');
    const { status, stderr } = read('notes.txt');
    expect(status).toBe(1);
    expect(stderr).toMatch(/notes\.txt is neither a PNG nor a JPEG/);
    const png = readFileSync(join(example, 'picture.png'));
    writeFileSync(join(folder, 'half.png'), png.subarray(0, png.length / 2));
    expect(read('half.png').stderr).toMatch(/half\.png is a PNG picture that is damaged or incomplete/);
    expect(read('nowhere.png').stderr).toMatch(/cannot read .*nowhere\.png/);
    expect(read('missing.png').status).toBe(1);
    expect(read('half.png', 'nowhere.png').stderr).toMatch(/one picture at a time/);
  });
});

describe('boxes of text', () => {
  it('find the smallest rectangle, turned as the points are', () => {
    const angle = 0.2;
    const points = [[-30, -10], [30, -10], [30, 10], [-30, 10]].map(([x, y]) => [
      100 + x! * Math.cos(angle) - y! * Math.sin(angle),
      50 + x! * Math.sin(angle) + y! * Math.cos(angle),
    ]); // prettier-ignore
    const box = smallestRectangle(points);
    expect(box.x).toBeCloseTo(100);
    expect(box.y).toBeCloseTo(50);
    expect(box.width).toBeCloseTo(60);
    expect(box.height).toBeCloseTo(20);
    expect(box.angle).toBeCloseTo(angle);
  });

  it('grow around each bright region and leave out the faint and the tiny', () => {
    const map = new Float32Array(100 * 60);
    const fill = (left: number, top: number, width: number, height: number, value: number) => {
      for (let y = top; y < top + height; y++) map.fill(value, y * 100 + left, y * 100 + left + width);
    };
    fill(10, 10, 40, 8, 0.9);
    fill(60, 40, 30, 6, 0.45); // above the threshold, below the box threshold
    fill(5, 50, 2, 2, 0.9);
    const boxes = textBoxes(map, 100, 60);
    expect(boxes).toHaveLength(1);
    const grow = (40 * 8 * 1.6) / (2 * (40 + 8));
    expect(boxes[0]).toMatchObject({ x: 30, y: 14, width: 40 + 2 * grow, height: 8 + 2 * grow, angle: 0 });
    expect(boxes[0]!.score).toBeCloseTo(0.9);
  });
});
