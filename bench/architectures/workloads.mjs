// What each weight-stripped architecture is run on: the workloads that answers and times are compared on.
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { cachePath } from '../../scripts/lib/cache.mjs';
import { folderOnce } from '../../scripts/lib/download.mjs';
import { writeHalf } from './half.mjs';
import { materialize, toHalf } from './materialize.mjs';

/** Numbers from 0 up to 1, the same on every machine. */
export function randomNumbers(seed) {
  let s = Math.imul(seed, 0x9e3779b1) >>> 0 || 1;
  return () => {
    s ^= s << 13;
    s ^= s >>> 17;
    s ^= s << 5;
    return (s >>> 0) / 2 ** 32;
  };
}

const count = (dims) => dims.reduce((a, b) => a * b, 1);

/** Roughly normal: the sum of four uniform numbers, scaled to a standard deviation of `scale`. */
export function gaussian(dims, next, scale = 1) {
  const data = Float32Array.from(
    { length: count(dims) },
    () => (next() + next() + next() + next() - 2) * Math.sqrt(3) * scale,
  );
  return { type: 'float32', dims, data };
}

const integers = (dims, value) => ({
  type: 'int64',
  dims,
  data: BigInt64Array.from({ length: count(dims) }, () => BigInt(value())),
});

/**
 * Pixels from 0 to 1. With the weights drawn here, efficientnet_b0 is ill-conditioned on pixels of standard deviation 1: a
 * change in an input's last bit moves its output by a hundredth, and no two float32 engines agree. Here it is 1e-6.
 */
const picture = (input, size) => (next) => {
  const dims = [1, 3, size, size];
  return { [input]: { type: 'float32', dims, data: Float32Array.from({ length: count(dims) }, next) } };
};

/** Token ids of which the last eighth of a row is padding, for a BERT. */
const sentence = (length) => (next) => {
  const dims = [1, length];
  let i = 0;
  return {
    input_ids: integers(dims, () => Math.floor(next() * 30522)),
    attention_mask: integers(dims, () => (i++ < length - Math.floor(length / 8) ? 1 : 0)),
    token_type_ids: integers(dims, () => 0),
  };
};

/** Token ids after `past` earlier positions of a decoder with a key-value cache. */
const tokens =
  ({ layers, heads, vocabulary }, length, past) =>
  (next) => {
    const feeds = {
      input_ids: integers([1, length], () => Math.floor(next() * vocabulary)),
      attention_mask: integers([1, past + length], () => 1),
    };
    for (let layer = 0; layer < layers; layer++) {
      for (const part of ['key', 'value']) {
        feeds[`past_key_values.${layer}.${part}`] = gaussian([1, heads, past, 64], next, 0.5);
      }
    }
    return feeds;
  };

const speech = (next) => ({ input_features: gaussian([1, 80, 3000], next, 0.5) });

const frames = (length) => (next) => ({
  features: gaussian([1, 80, length], next),
  h0: gaussian([2, 1, 256], next, 0.1),
  c0: gaussian([2, 1, 256], next, 0.1),
});

const gpt2 = { layers: 12, heads: 12, vocabulary: 50257 };
const llama = { layers: 8, heads: 4, vocabulary: 32000 };

/**
 * The thirteen workloads whose times are compared. `inputs` draws the feeds, in plain form, from a seed.
 * @type {{ name: string, model: string, inputs: (seed: number) => Record<string, object> }[]}
 */
export const workloads = [
  ['resnet50', 'resnet50', picture('input', 224)],
  ['mobilenet_v2', 'mobilenet_v2', picture('input', 224)],
  ['efficientnet_b0', 'efficientnet_b0', picture('input', 224)],
  ['vit_base', 'vit_base', picture('input', 224)],
  ['yolo_s', 'yolo_s', picture('images', 640)],
  ['bert_base-128', 'bert_base', sentence(128)],
  ['minilm_l6-16', 'minilm_l6', sentence(16)],
  ['minilm_l6-128', 'minilm_l6', sentence(128)],
  ['gpt2-prefill-256', 'gpt2', tokens(gpt2, 256, 0)],
  ['gpt2-decode-255', 'gpt2', tokens(gpt2, 1, 255)],
  ['llama_tiny-decode-255', 'llama_tiny', tokens(llama, 1, 255)],
  ['whisper_base_encoder', 'whisper_base_encoder', speech],
  ['rnn_tagger-200', 'rnn_tagger', frames(200)],
].map(([name, model, draw]) => ({ name, model, inputs: (seed) => draw(randomNumbers(seed)) }));

/** What only the GPU is timed on. */
export const onGpu = [
  ['whisper_small_encoder', 'whisper_small_encoder', speech],
  ['efficientnet_b4', 'efficientnet_b4', picture('input', 380)],
].map(([name, model, draw]) => ({ name, model, inputs: (seed) => draw(randomNumbers(seed)) }));

/** Smaller inputs of the same architectures, odd sizes among them: what a test of agreement runs. */
export const checks = [
  ['resnet50', 'resnet50', picture('input', 224)],
  ['mobilenet_v2', 'mobilenet_v2', picture('input', 224)],
  ['efficientnet_b0', 'efficientnet_b0', picture('input', 224)],
  ['vit_base', 'vit_base', picture('input', 224)],
  ['yolo_s', 'yolo_s', picture('images', 640)],
  ['bert_base', 'bert_base', sentence(37)],
  ['minilm_l6', 'minilm_l6', sentence(53)],
  ['gpt2 prefill', 'gpt2', tokens(gpt2, 19, 0)],
  ['gpt2 decode', 'gpt2', tokens(gpt2, 1, 30)],
  ['llama_tiny prefill', 'llama_tiny', tokens(llama, 17, 5)],
  ['llama_tiny decode', 'llama_tiny', tokens(llama, 1, 33)],
  ['whisper_base_encoder', 'whisper_base_encoder', speech],
  ['rnn_tagger', 'rnn_tagger', frames(45)],
].map(([name, model, draw]) => ({ name, model, inputs: (seed) => draw(randomNumbers(seed)) }));

/** Feeds with their float32 tensors as float16. */
export const asHalf = (feeds) =>
  Object.fromEntries(
    Object.entries(feeds).map(([name, value]) => [
      name,
      value.type === 'float32' ? { ...value, type: 'float16', data: toHalf(value.data) } : value,
    ]),
  );

/** Path of an architecture with its weights drawn, made in the cache on first use. */
export async function architecture(name) {
  const folder = cachePath('architectures', name);
  await folderOnce(folder, async (temporary) => {
    materialize(name, temporary);
  });
  const path = join(folder, `${name}.onnx`);
  if (!existsSync(path)) throw new Error(`${folder} holds no ${name}.onnx; remove it`);
  return path;
}

/** Path of an architecture in float16, made in the cache on first use. */
export async function halfArchitecture(name) {
  const model = await architecture(name);
  const folder = cachePath('architectures', `${name}-half`);
  await folderOnce(folder, async (temporary) => {
    mkdirSync(temporary, { recursive: true });
    writeHalf(model, join(temporary, `${name}.onnx`));
  });
  return join(folder, `${name}.onnx`);
}
