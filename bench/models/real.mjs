// One run of each real model on inputs of the size it is used with.
import { relativeDistance } from '../../scripts/lib/agreement.mjs';
import { gaussian, randomNumbers } from '../architectures/workloads.mjs';
import { fetchModel } from './fetch-models.mjs';

const int64 = (dims, value) => ({
  type: 'int64',
  dims,
  data: BigInt64Array.from({ length: dims.reduce((a, b) => a * b, 1) }, value),
});
const sampleRate = () => int64([1], () => 16000n);

/** Feeds of one step of Whisper's decoder with `past` tokens behind it. */
function decoderStep(next, past) {
  const feeds = {
    input_ids: int64([1, 1], () => BigInt(Math.floor(next() * 50257))),
    encoder_hidden_states: gaussian([1, 1500, 384], next),
    use_cache_branch: { type: 'bool', dims: [1], data: Uint8Array.of(1) },
  };
  for (let layer = 0; layer < 4; layer++) {
    for (const part of ['key', 'value']) {
      feeds[`past_key_values.${layer}.decoder.${part}`] = gaussian([1, 6, past, 64], next);
      feeds[`past_key_values.${layer}.encoder.${part}`] = gaussian([1, 6, 1500, 64], next);
    }
  }
  return feeds;
}

const tokens = (next) => ({
  input_ids: int64([1, 128], () => BigInt(1000 + Math.floor(next() * 20000))),
  attention_mask: int64([1, 128], () => 1n),
  token_type_ids: int64([1, 128], () => 0n),
});

const picture = (dims) => (next) => ({ x: gaussian(dims, next, 0.5) });

/** Lines of dark blocks on a light page: what a detector of text is sure about. */
const page = (dims) => () => {
  const [, , height, width] = dims;
  const data = Float32Array.from({ length: 3 * height * width }, (_, i) => {
    const x = i % width;
    const y = Math.floor(i / width) % height;
    const letter = Math.floor(x / 14) * 7 + Math.floor(y / 48) * 11;
    return y % 48 < 24 && x % 14 < 10 && letter % 5 !== 0 ? -1.8 : 2.1;
  });
  return { x: { type: 'float32', dims, data } };
};

/** name, model, draw of the feeds, and where they differ from the default: outputs wanted, tolerance, measure of errors. */
const table = [
  ['ppocr-v4-det 640', 'ppocr-v4-det', page([1, 3, 640, 640])],
  ['ppocr-v4-rec 320', 'ppocr-v4-rec', picture([1, 3, 48, 320])],
  ['ppocr-cls', 'ppocr-cls', picture([1, 3, 48, 192])],
  ['ppocr-v6-det 640', 'ppocr-v6-det', page([1, 3, 640, 640])],
  ['ppocr-v6-rec 320', 'ppocr-v6-rec', picture([1, 3, 48, 320])],
  [
    'silero-v4',
    'silero-v4',
    (next) => ({
      input: gaussian([1, 1536], next, 0.1),
      sr: sampleRate(),
      h: gaussian([2, 1, 64], next, 0.1),
      c: gaussian([2, 1, 64], next, 0.1),
    }),
  ],
  [
    'silero-v5',
    'silero-v5',
    (next) => ({ input: gaussian([1, 576], next, 0.1), sr: sampleRate(), state: gaussian([2, 1, 128], next, 0.1) }),
  ],
  [
    'whisper-tiny encoder int8',
    'whisper-encoder',
    (next) => ({ input_features: gaussian([1, 80, 3000], next, 0.5) }),
    // One rounding that flips moves all later layers: the peer's own levels lie 0.06 apart.
    { fetches: ['last_hidden_state'], tolerance: 1e-1, measure: relativeDistance },
  ],
  [
    'whisper-tiny step int8',
    'whisper-decoder',
    (next) => decoderStep(next, 16),
    { fetches: ['logits', 'present.0.decoder.key'], tolerance: 2e-2 },
  ],
  ['detypify', 'detypify', picture([1, 1, 224, 224])],
  ['melspectrogram 1 s', 'melspectrogram', (next) => ({ input: gaussian([1, 16000], next, 3000) })],
  ['speech-embedding', 'speech-embedding', (next) => ({ input_1: gaussian([1, 76, 32, 1], next) })],
  [
    'magika',
    'magika',
    (next) => ({
      bytes: { type: 'int32', dims: [1, 2048], data: Int32Array.from({ length: 2048 }, () => next() * 257) },
    }),
  ],
  ['basic-pitch', 'basic-pitch', (next) => ({ 'serving_default_input_2:0': gaussian([1, 43844, 1], next, 0.2) })],
  ['minilm int8 128', 'minilm-int8', tokens, { tolerance: 2e-2 }],
];

export const realWorkloads = table.map(([name, model, draw, more]) => ({
  name,
  path: () => fetchModel(model),
  inputs: (seed) => draw(randomNumbers(seed)),
  ...more,
}));
