import { realpathSync } from 'node:fs';
import { access, constants, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { InferenceError, typeError } from '../errors.js';
import { pathOfFileUrl } from '../file-url.js';
import { shownPath } from '../hints.js';
import { isBlob } from '../model-source.js';
import { bytesOf, describe, show, typedArrayName } from '../tensor/tensor-data.js';

/** Rows of 8-bit pixels, each of `channels` values: gray, gray and alpha, RGB or RGBA. */
export interface Pixels {
  data: Uint8Array;
  width: number;
  height: number;
  channels: number;
}

/**
 * The pixels of a source, or a promise of them where it is a picture to be decoded; `size` is that of bare ones. Throws
 * TypeError for what is no picture and INVALID_ARGUMENT where pixels and sizes do not fit; rejects with INVALID_ARGUMENT where
 * a picture cannot be decoded, and with IO where its file cannot be read or `sharp` is not installed.
 */
export function readPixels(
  source: unknown,
  size: { readonly width?: unknown; readonly height?: unknown },
): Pixels | Promise<Pixels> {
  if (typeof source === 'string' || source instanceof URL) return decoded(pictureOf(source));
  const name = typedArrayName(source);
  if (name === 'Uint8Array' || name === 'Uint8ClampedArray') {
    const bytes = bytesOf(source);
    const isPicture = size.width === undefined && size.height === undefined;
    return isPicture ? decoded(bytes) : pixelsOf(bytes, size.width, size.height);
  }
  if (typeof source === 'object' && source !== null) {
    const { data, width, height } = source as { data?: unknown; width?: unknown; height?: unknown };
    const kind = typedArrayName(data);
    if (kind === 'Uint8Array' || kind === 'Uint8ClampedArray') {
      if (width === undefined && 'info' in source) {
        throw typeError("sharp's { data, info } is given as { data, ...info }: its info has the width and the height.");
      }
      return pixelsOf(bytesOf(data), width, height);
    }
  }
  if (typeof source === 'object' && source !== null && isBlob(source)) {
    return source.arrayBuffer().then((buffer) => decoded(new Uint8Array(buffer)));
  }
  const what = "pixels ({ data, width, height }), a path, a URL, or a file's bytes or Blob";
  throw typeError(`An image is ${what}, got ${describe(source)}.`);
}

function pixelsOf(data: Uint8Array, width: unknown, height: unknown): Pixels {
  for (const [name, side] of Object.entries({ width, height })) {
    if (!Number.isSafeInteger(side) || (side as number) < 1) {
      throw typeError(
        `An image's ${name} must be a whole number from 1 on, got ${typeof side === 'number' ? show(side) : describe(side)}.`,
      );
    }
  }
  const area = (width as number) * (height as number);
  const channels = data.length / area;
  if (!Number.isInteger(channels) || channels < 1 || channels > 4) {
    const message = `${data.length} bytes are not ${String(width)} x ${String(height)} pixels of 1 to 4 channels.`;
    throw new InferenceError('INVALID_ARGUMENT', message);
  }
  return { data, width: width as number, height: height as number, channels };
}

function pictureOf(source: string | URL): string | Uint8Array {
  const text = String(source);
  const data = /^data:[^,]*,/i.exec(text);
  if (data !== null) {
    const rest = text.slice(data[0].length);
    const isBase64 = /;\s*base64\s*,$/i.test(data[0]);
    return isBase64 ? Buffer.from(rest, 'base64') : Buffer.from(bytesIn(rest), 'latin1');
  }
  if (/^file:/i.test(text)) return pathOfFileUrl(text);
  if (/^https?:/i.test(text)) throw typeError('An image is not fetched: give its bytes, or { data, width, height }.');
  return text;
}

/** The bytes of a URL's text, by characters up to 255. */
function bytesIn(text: string): string {
  const bytes = Buffer.from(text).toString('latin1');
  return bytes.replace(/%([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));
}

/** What this package asks of sharp. */
interface Sharp {
  rotate(): Sharp;
  toColourspace(space: string): Sharp;
  raw(): Sharp;
  toBuffer(options: { resolveWithObject: true }): Promise<{
    data: Uint8Array;
    info: { width: number; height: number; channels: number };
  }>;
}

type SharpModule = { default: (picture: string | Uint8Array) => Sharp };

/** The program's sharp: this package may be linked into the program, and then finds nothing that lies beside the link. */
async function loadSharp(): Promise<SharpModule['default']> {
  const name = 'sharp'; // a package that need not be there
  try {
    return ((await import(name)) as SharpModule).default;
  } catch (cause) {
    const [, program] = process.argv;
    try {
      const from = program === undefined ? join(process.cwd(), 'program') : realpathSync(program);
      const path = createRequire(from).resolve(name);
      return ((await import(pathToFileURL(path).href)) as SharpModule).default;
    } catch (failure) {
      const isAbsent = (failure as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND';
      const message = 'To decode a picture, install sharp: npm install sharp. Or give pixels: { data, width, height }.';
      throw new InferenceError('IO', message, undefined, { cause: isAbsent ? cause : failure });
    }
  }
}

/** A picture's pixels, turned as its EXIF data says. */
async function decoded(picture: string | Uint8Array): Promise<Pixels> {
  const sharp = await loadSharp();
  try {
    const { data, info } = await sharp(picture)
      .rotate()
      .toColourspace('srgb')
      .raw()
      .toBuffer({ resolveWithObject: true });
    return { data, width: info.width, height: info.height, channels: info.channels };
  } catch (cause) {
    throw await decodingFailure(picture, cause as Error);
  }
}

/** Why sharp gave no pixels: IO where a file cannot be read, INVALID_ARGUMENT for what is in it. */
export async function decodingFailure(picture: string | Uint8Array, cause: Error): Promise<InferenceError> {
  if (typeof picture !== 'string') {
    const isOther = cause.message.includes('unsupported image format');
    const hint = isOther ? '. Pixels need the options width and height' : '';
    const message = `The picture cannot be decoded: ${cause.message}${hint}`;
    return new InferenceError('INVALID_ARGUMENT', message, undefined, { cause });
  }
  const path = shownPath(picture);
  const shown = (text: string): string => text.replaceAll(picture, () => path);
  const problem = await readingProblem(picture);
  if (problem !== undefined) {
    return new InferenceError('IO', `The picture ${path} cannot be read: ${shown(problem)}`, { path }, { cause });
  }
  return new InferenceError('INVALID_ARGUMENT', `The picture ${path} cannot be decoded: ${shown(cause.message)}`, { path }, { cause }); // prettier-ignore
}

/** Why a file cannot be read; undefined for one that can. */
async function readingProblem(path: string): Promise<string | undefined> {
  try {
    if ((await stat(path)).isDirectory()) return 'it is a folder';
    await access(path, constants.R_OK);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}
