import type { ImageFormat, TypedTensor } from 'onnxruntime-common';

import { callNative, fromNative, InferenceError, rangeError, typeError } from '../errors.js';
import { loadNative } from '../load-native.js';
import type { Completion } from '../native.js';
import type { OptionReader } from '../options/option-reader.js';
import { StrictReader } from '../options/strict-reader.js';
import { completion, throwIfAborted } from '../run/jobs.js';
import { Tensor } from '../tensor/tensor.js';
import { group, imageOptions } from './image-options.js';
import { readPixels, type Pixels } from './image-source.js';
import type { FromImageOptions, ImageSource } from './image-types.js';
import { readNorm } from './norm.js';

const formats: Readonly<Record<ImageFormat, readonly number[]>> = {
  RGB: [0, 1, 2],
  RGBA: [0, 1, 2, 3],
  BGR: [2, 1, 0],
  RBG: [0, 2, 1],
};
const formatNames = Object.keys(formats) as ImageFormat[];
const opaque = 4;

/**
 * A tensor of a picture, or of several of one size as a batch. The engine crops, resizes and normalises in one pass on a
 * thread of its own; pixels are read at the call. Rejects with TypeError and RangeError for wrong options,
 * INVALID_ARGUMENT where pixels and sizes do not fit or a picture cannot be decoded, IO for a file that cannot be read or
 * where `sharp` is not installed, and ABORTED by `signal`.
 */
export async function fromImage(
  source: ImageSource | readonly ImageSource[],
  options: FromImageOptions = {},
): Promise<TypedTensor<'float32'> | TypedTensor<'uint8'>> {
  if (!Array.isArray(source)) return fromOne(source as ImageSource, options);
  if (source.length === 0) throw typeError('A batch needs one image at least.');
  return batchOf(await Promise.all(source.map((each: ImageSource) => fromOne(each, options))));
}

/** Tensors of one picture each as one of all. */
function batchOf<T extends TypedTensor<'float32'> | TypedTensor<'uint8'>>(pictures: readonly T[]): T {
  const [first] = pictures as [T];
  const dims = [pictures.length, ...first.dims.slice(1)];
  const data = new (first.data.constructor as Float32ArrayConstructor)(pictures.length * first.data.length);
  pictures.forEach((picture, i) => {
    if (picture.dims.some((dim, axis) => dim !== first.dims[axis])) {
      const message = `Image ${i} becomes [${picture.dims.join()}], the first one [${first.dims.join()}].`;
      throw new InferenceError('INVALID_ARGUMENT', `${message} Give all one size: resizedWidth and resizedHeight.`);
    }
    data.set(picture.data as Float32Array, i * first.data.length);
  });
  return new Tensor(first.type, data as never, dims) as T;
}

async function fromOne(
  source: ImageSource,
  options: FromImageOptions,
): Promise<TypedTensor<'float32'> | TypedTensor<'uint8'>> {
  const reader = imageOptions(options, 'FromImageOptions');
  const signal = reader.signal();
  throwIfAborted({ signal });
  const format = reader.oneOf('format', formatNames, 'RGB');
  const tensorFormat = reader.oneOf('tensorFormat', formatNames, 'RGB');
  const layout = reader.oneOf('tensorLayout', ['NCHW', 'NHWC'] as const, 'NCHW');
  const dataType = reader.oneOf('dataType', ['float32', 'uint8'] as const, 'float32');
  const method = reader.oneOf('method', ['bilinear', 'nearest'] as const, 'bilinear');
  const { factors, shifts } = readNorm(reader, dataType === 'uint8' ? 1 : 255);
  const read = readPixels(source, { width: reader.get('width'), height: reader.get('height') });
  const pixels = read instanceof Promise ? await read : read;
  throwIfAborted({ signal });
  const { part, width, height } = readSizes(reader, pixels);
  reader.close();
  const colors = formats[tensorFormat];
  const how = Float64Array.of(
    ...[pixels.width, pixels.height, pixels.channels],
    ...part,
    ...[width, height, colors.length],
    ...padded(colors.map((color) => channelOf(color, pixels.channels, formats[format]))),
    ...padded(colors.map((color) => factors[color] as number)),
    ...padded(colors.map((color) => shifts[color] as number)),
    ...[method === 'nearest', layout === 'NCHW', dataType === 'uint8'].map(Number),
  );
  const buffer = await prepared(pixels.data, how, signal);
  const dims = layout === 'NCHW' ? [1, colors.length, height, width] : [1, height, width, colors.length];
  if (dataType === 'uint8') return new Tensor('uint8', new Uint8Array(buffer), dims);
  return new Tensor('float32', new Float32Array(buffer), dims);
}

/** The elements of the result; `pixels` are read during the call. */
function prepared(pixels: Uint8Array, how: Float64Array, signal: AbortSignal | undefined): Promise<ArrayBuffer> {
  let settle: Completion<ArrayBuffer> | undefined;
  const job = callNative(() => loadNative().prepareImage(pixels, how, (error, result) => settle?.(error, result)));
  const result = completion<ArrayBuffer>(job, signal, (callback) => (settle = callback));
  return result.catch((error: unknown) => {
    throw fromNative(error, signal?.aborted ? { cause: signal.reason } : undefined);
  });
}

const padded = (numbers: readonly number[]): readonly number[] => [...numbers, 0, 0, 0].slice(0, 4);

/** Which channel of the pixels holds a color: 0 to 3 for red, green, blue and alpha. */
function channelOf(color: number, channels: number, format: readonly number[]): number {
  if (color === 3) return channels === 2 || channels === 4 ? channels - 1 : opaque;
  return channels <= 2 ? 0 : format.indexOf(color);
}

/** The part that is taken: left, top, width and height; and the size of the result. */
function readSizes(reader: OptionReader, pixels: Pixels): { part: number[]; width: number; height: number } {
  const crop = group(reader, 'crop') ?? { x: 0, y: 0, width: pixels.width, height: pixels.height };
  const cropReader = new StrictReader(crop, "image options' crop", 'crop');
  let [left, top] = [cropReader.integer('x', 0), cropReader.integer('y', 0)];
  let [partWidth, partHeight] = [cropReader.integer('width', 0), cropReader.integer('height', 0)];
  cropReader.close();
  if (partWidth === 0 || partHeight === 0 || left + partWidth > pixels.width || top + partHeight > pixels.height) {
    const actual = `${partWidth} x ${partHeight} at ${left}, ${top}`;
    throw rangeError(`Invalid image options: 'crop' of ${actual} is not within ${pixels.width} x ${pixels.height}.`);
  }
  const width = reader.integer('resizedWidth', partWidth);
  const height = reader.integer('resizedHeight', partHeight);
  if (width === 0 || height === 0 || width * height > 2 ** 30) {
    throw new InferenceError('INVALID_ARGUMENT', `An image of ${width} x ${height} cannot be made.`);
  }
  if (reader.oneOf('fit', ['fill', 'cover'] as const, 'fill') === 'cover') {
    const scale = Math.max(width / partWidth, height / partHeight);
    const [coverWidth, coverHeight] = [Math.max(1, Math.round(width / scale)), Math.max(1, Math.round(height / scale))];
    left += Math.floor((partWidth - coverWidth) / 2);
    top += Math.floor((partHeight - coverHeight) / 2);
    [partWidth, partHeight] = [coverWidth, coverHeight];
  }
  return { part: [left, top, partWidth, partHeight], width, height };
}
