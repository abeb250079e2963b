import type { Tensor as CommonTensor } from 'onnxruntime-common';

import { InferenceError } from '../errors.js';
import { StrictReader } from '../options/strict-reader.js';
import { readNorm } from './norm.js';
import { encodePng } from './png.js';
import type { ImageLike, ToImageOptions } from './image-types.js';

const orders = { RGB: [0, 1, 2], RGBA: [0, 1, 2], BGR: [2, 1, 0], RBG: [0, 2, 1] } as const;

/**
 * The pixels of a tensor of one picture, in RGBA: what an ImageData is. Throws INVALID_ARGUMENT for other dims, and
 * TypeError for wrong options.
 */
export function toImageData(tensor: CommonTensor, options: ToImageOptions = {}): ImageLike & { colorSpace: 'srgb' } {
  const reader = new StrictReader(options, 'image options', 'ToImageOptions');
  const layout = reader.oneOf('tensorLayout', ['NCHW', 'NHWC'] as const, 'NCHW');
  const { means, biases } = readNorm(reader, tensor.type === 'uint8' ? 1 : 255);
  const order = orders[reader.oneOf('format', ['RGB', 'RGBA', 'BGR', 'RBG'] as const, 'RGB')];
  reader.close();
  const [batch = 0, ...rest] = tensor.dims.length === 3 ? [1, ...tensor.dims] : tensor.dims;
  const [channels = 0, height = 0, width = 0] = layout === 'NCHW' ? rest : [rest[2], rest[0], rest[1]];
  if (rest.length !== 3 || batch !== 1 || ![1, 3, 4].includes(channels)) {
    const message = `A tensor of dims [${tensor.dims.join()}] is no picture of layout ${layout} with 1, 3 or 4 channels.`;
    throw new InferenceError('INVALID_ARGUMENT', message);
  }
  const values = tensor.data as ArrayLike<number>;
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
  return `data:image/png;base64,${Buffer.from(encodePng(toImageData(tensor, options))).toString('base64')}`;
}
