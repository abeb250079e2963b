import type { ImageFormat, ImageTensorLayout } from 'onnxruntime-common';

/** What an ImageData is; its pixels may be RGB, too. */
export interface ImageLike {
  /** Rows from the top, pixels from the left: `width` * `height` times 1 to 4 bytes, one a channel. */
  readonly data: Uint8Array | Uint8ClampedArray;
  /** Pixels in a row. */
  readonly width: number;
  /** Rows. */
  readonly height: number;
}

/** Pixels, or a picture: its file, its URL, its bytes or a Blob of them, which `sharp` decodes. */
export type ImageSource = ImageLike | Uint8Array | Uint8ClampedArray | Blob | string | URL;

/** A number for all channels, or one for each of red, green, blue and alpha. */
export type PerChannel = number | readonly number[];

/** How `Tensor.fromImage` makes a tensor of a picture: crop, then resize, then normalise. */
export interface FromImageOptions {
  /** Ends it: it rejects with ABORTED. */
  signal?: AbortSignal;
  /** Pixels in a row, of a source that is bare bytes; other sources know theirs. */
  width?: number;
  /** Rows, of a source that is bare bytes. */
  height?: number;
  /** The order of the channels in the pixels. Default: 'RGB', with alpha where there are four. */
  format?: ImageFormat;
  /** The part that is taken. Default: all. */
  crop?: { readonly x: number; readonly y: number; readonly width: number; readonly height: number };
  /** The width of the result in pixels. Default: that of the part. */
  resizedWidth?: number;
  /** The height of the result in pixels. Default: that of the part, whatever `resizedWidth` is. */
  resizedHeight?: number;
  /** 'cover' takes the middle of the part, as large as has the shape of the result; 'fill' distorts. Default: 'fill'. */
  fit?: 'fill' | 'cover';
  /** 'bilinear' averages over all pixels that become one. Default: 'bilinear'. */
  method?: 'bilinear' | 'nearest';
  /** Channels of the tensor, in their order. Default: 'RGB'. */
  tensorFormat?: ImageFormat;
  /** Default: 'NCHW'. */
  tensorLayout?: ImageTensorLayout;
  /** Default: 'float32'. */
  dataType?: 'float32' | 'uint8';
  /** (pixel + bias) / mean. Default: mean 255 and bias 0; of uint8 mean 1. */
  norm?: { readonly mean?: PerChannel; readonly bias?: PerChannel };
  /** In the place of `norm`: (pixel / 255 - mean) / std, as models of pictures are trained. */
  normalize?: { readonly mean: PerChannel; readonly std: PerChannel };
}

/** How a tensor becomes a picture. */
export interface ToImageOptions {
  /** Default: 'NCHW'. */
  tensorLayout?: 'NCHW' | 'NHWC';
  /** The order of the tensor's channels. Default: 'RGB', with alpha where there are four. */
  format?: 'RGB' | 'RGBA' | 'BGR' | 'RBG';
  /** value * mean - bias. Default: mean 255 and bias 0; of uint8 mean 1. */
  norm?: { readonly mean?: PerChannel; readonly bias?: PerChannel };
  /** In the place of `norm`: (value * std + mean) * 255, which takes back what `fromImage` did by the same numbers. */
  normalize?: { readonly mean: PerChannel; readonly std: PerChannel };
}
