import { Tensor as CommonTensor } from 'onnxruntime-common';

import { Tensor } from './tensor.js';
import { fromImage } from '../image/from-image.js';
import type { ToImageOptions } from '../image/image-types.js';
import { toDataURL, toImageData } from '../image/to-image.js';

/**
 * Gives tensors what onnxruntime-common's cannot do in Node.js, for want of a canvas: `Tensor.fromImage`, `toImageData`
 * and `toDataURL`. Where there is a canvas, its own methods stay.
 */
export function installImages(): void {
  const plain = { writable: true, configurable: true };
  Object.defineProperty(Tensor, 'fromImage', { value: fromImage, ...plain });
  if ('document' in globalThis || 'OffscreenCanvas' in globalThis) return;
  const methods = {
    toImageData(this: CommonTensor, options?: ToImageOptions) {
      return toImageData(this, options);
    },
    toDataURL(this: CommonTensor, options?: ToImageOptions) {
      return toDataURL(this, options);
    },
  };
  for (const [name, value] of Object.entries(methods)) {
    Object.defineProperty(CommonTensor.prototype, name, { value, ...plain });
  }
}
