import type { Tensor as CommonTensor } from 'onnxruntime-common';

import { InferenceError } from '../errors.js';
import { elementTypeOfName } from '../tensor/element-types.js';
import { imageOptions } from './image-options.js';
import { readNorm } from './norm.js';
import { encodePng } from './png.js';
import type { ImageLike, ToImageOptions } from './image-types.js';

const orders = { RGB: [0, 1, 2], RGBA: [0, 1, 2], BGR: [2, 1, 0], RBG: [0, 2, 1] } as const;

/**
 * The pixels of a tensor of one picture, in RGBA: what an ImageData is. Throws INVALID_ARGUMENT for other dims
 * and for types without numbers, TypeError and RangeError for wrong options.
 */
export function toImageData(tensor: CommonTensor, options: ToImageOptions = {}): ImageLike & { colorSpace: 'srgb' } {
  const reader = imageOptions(options, 'ToImageOptions');
  const { means, biases } = readNorm(reader, tensor.type === 'uint8' ? 1 : 255);
  const layout = reader.oneOf('tensorLayout', ['NCHW', 'NHWC'] as const, 'NCHW');
  const order = orders[reader.oneOf('format', ['RGB', 'RGBA', 'BGR', 'RBG'] as const, 'RGB')];
  reader.close();
  const [batch = 0, ...rest] = tensor.dims.length === 3 ? [1, ...tensor.dims] : tensor.dims;
  const [channels = 0, height = 0, width = 0] = layout === 'NCHW' ? rest : [rest[2], rest[0], rest[1]];
  if (rest.length !== 3 || batch !== 1 || ![1, 3, 4].includes(channels)) {
    const message = `A tensor of dims [${tensor.dims.join()}] is no picture of layout ${layout} with 1, 3 or 4 channels.`;
    throw new InferenceError('INVALID_ARGUMENT', message);
  }
  const values = numbersOf(tensor);
  const area = width * height;
  const data = new Uint8ClampedArray(4 * area);
  for (let color = 0; color < 4; color++) {
    const channel = color === 3 ? 3 : channels === 1 ? 0 : order.indexOf(color as 0 | 1 | 2);
    const [mean, bias] = [means[color] as number, biases[color] as number];
    for (let i = 0; i < area; i++) {
      const value =
        channel < channels ? values[layout === 'NCHW' ? channel * area + i : i * channels + channel] : undefined;
      data[4 * i + color] = value === undefined ? 255 : Number(value) * mean - bias;
    }
  }
  return { data, width, height, colorSpace: 'srgb' };
}

/** The same as the text of a URL that holds a PNG. */
export function toDataURL(tensor: CommonTensor, options?: ToImageOptions): string {
  const image = toImageData(tensor, options);
  if (image.data.length === 0) throw new InferenceError('INVALID_ARGUMENT', 'A picture without pixels makes no PNG.');
  return `data:image/png;base64,${Buffer.from(encodePng(image)).toString('base64')}`;
}

/** The tensor's elements as numbers. Throws INVALID_ARGUMENT for types that pictures do not have. */
function numbersOf({ type, data }: CommonTensor): ArrayLike<unknown> {
  if (type === 'float16' && data instanceof Uint16Array) return Float32Array.from(data, float16);
  if (type === 'bfloat16') return new Float32Array(Uint32Array.from(data as Uint16Array, (bits) => bits << 16).buffer);
  const element = elementTypeOfName(type);
  const plain = element !== undefined && element.bits >= 8 && element.perElement === 1 && !type.startsWith('float8');
  if (!plain) throw new InferenceError('INVALID_ARGUMENT', `A tensor of ${type} makes no picture: cast it to float32.`);
  return data as ArrayLike<unknown>;
}

/** The value of a float16. */
function float16(bits: number): number {
  const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
  const size =
    exponent === 0 ? fraction * 2 ** -24 : exponent === 31 ? (fraction === 0 ? Infinity : NaN) : (1 + fraction / 1024) * 2 ** (exponent - 15); // prettier-ignore
  return bits >= 0x8000 ? -size : size;
}
