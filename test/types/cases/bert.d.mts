// As `infernode types` writes it.
import type { ModelTensor, ModelValue } from 'infernode';

export interface Bert {
  inputs: {
    input_ids: ModelTensor<'int64', ['batch', 'sequence']>;
    pixels: ModelTensor<'float32', ['batch', 3, 224, 224]>;
    'any rank': ModelTensor<'float32', null>;
  };
  optionalInputs: {
    scale: ModelTensor<'float32', [1]>;
  };
  outputs: {
    logits: ModelTensor<'float32', ['batch', 1000]>;
    words: ModelTensor<'string', ['batch']>;
    list: ModelValue;
  };
}
