import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { available } from '../fixtures/available.js';
import { model, node, type Dim } from '../fixtures/onnx-writer.js';
import { type Clients, install, installBoth, output, outputAsPeer, v3, v4 } from './install.js';

const scratch = mkdtempSync(join(tmpdir(), 'infernode-'));
afterAll(() => rmSync(scratch, { recursive: true }));

const [tokens, heads, width] = [8, 2, 4];
const floats = (name: string, rows: number[][]) =>
  ({ name, type: 'float32', dims: [rows.length, rows[0]!.length], data: Float32Array.from(rows.flat()) }) as const;
const ints = (name: string, values: number[]) =>
  ({ name, type: 'int64', dims: [values.length], data: BigInt64Array.from(values, BigInt) }) as const;
const square = (value: (row: number, column: number) => number): number[][] =>
  Array.from({ length: tokens }, (_, row) => Array.from({ length: tokens }, (__, column) => value(row, column)));

/** What a token says of the next one: the one behind it, or the second behind it. */
const says = square((from, to) => (to === (from + 1) % tokens ? 1.5 : to === (from + 2) % tokens ? 1 : 0) + 0.01 * to);

/** The tokens that the model below goes on with: what the last one says, less how often each was there. */
function continued(prompt: number[], count: number): number[] {
  const row = [...prompt];
  for (let i = 0; i < count; i++) {
    const scores = says[row.at(-1)!]!.map((score, token) => score - row.filter((each) => each === token).length);
    row.push(scores.indexOf(Math.max(...scores)));
  }
  return row;
}

/** A decoder whose cache of keys and values has what stood before, each token as a one among zeros. */
function decoder(batch: Dim): Uint8Array {
  const cache = (name: string, length: string) =>
    ({ name, type: 'float32', shape: [batch, heads, length, width] }) as const;
  return model({
    nodes: [
      node('Gather', ['ones', 'input_ids'], ['embedded']),
      node('Reshape', ['embedded', 'by heads'], ['split']),
      node('Transpose', ['split'], ['key'], { attributes: { perm: [0n, 2n, 1n, 3n] } }),
      node('Concat', ['past_key_values.0.key', 'key'], ['present.0.key'], { attributes: { axis: 2n } }),
      node('Concat', ['past_key_values.0.value', 'key'], ['present.0.value'], { attributes: { axis: 2n } }),
      node('ReduceSum', ['present.0.value', 'along the text'], ['counted'], { attributes: { keepdims: 0n } }),
      node('Reshape', ['counted', 'as one row'], ['counts']),
      node('MatMul', ['embedded', 'says'], ['said']),
      node('Sub', ['said', 'counts'], ['logits']),
    ],
    inputs: [
      { name: 'input_ids', type: 'int64', shape: [batch, 'sequence_length'] },
      { name: 'attention_mask', type: 'int64', shape: [batch, 'total_sequence_length'] },
      cache('past_key_values.0.key', 'past_sequence_length'),
      cache('past_key_values.0.value', 'past_sequence_length'),
    ],
    outputs: [
      { name: 'logits', type: 'float32', shape: [batch, 'sequence_length', tokens] },
      cache('present.0.key', 'total_sequence_length'),
      cache('present.0.value', 'total_sequence_length'),
    ],
    initializers: [
      floats('ones', square((row, column) => Number(row === column))),
      floats('says', says),
      ints('by heads', [0, 0, heads, width]),
      ints('along the text', [2]),
      ints('as one row', [-1, 1, tokens]),
    ],
  });
}

const config = { model_type: 'gpt2', vocab_size: tokens, n_layer: 1, n_head: heads, n_embd: heads * width };

/** A folder with the model, as the hub has them. */
function write(name: string, batch: Dim, more: Record<string, object> = {}): string {
  const place = join(scratch, name);
  mkdirSync(join(place, 'onnx'), { recursive: true });
  for (const [file, value] of Object.entries({ 'config.json': config, ...more }))
    writeFileSync(join(place, file), JSON.stringify(value));
  writeFileSync(join(place, 'onnx', 'model.onnx'), decoder(batch));
  return place;
}

// transformers.js makes an empty cache of a model's symbols. It knows `batch_size`; every other one is 0 to it.
it.for<[string, Dim]>([
  ['batch_size', 'batch_size'],
  ['N', 'N'],
  ['decoder_batch', 'decoder_batch'],
  ['nothing', ''],
])('text generation of transformers.js runs where the batch symbol is called %s', async ([name, batch], context) => {
  const folder = await available(context, 'the client packages', () => install(v4));
  const place = write(name, batch);
  for (const prompts of [[[3, 1, 4]], [[2, 7], [5, 5]]]) { // prettier-ignore
    const env = { MODEL: place, PROMPTS: JSON.stringify(prompts), COUNT: '10' };
    expect(await output(folder, 'generation.mjs', env)).toEqual(prompts.map((prompt) => continued(prompt, 10)));
  }
});

const letters = [...'abcĠdefg']; // the fourth is how byte-level tokenizers write a space
const spelled = (ids: number[]): string => ids.map((id) => letters[id]).join('').replaceAll('Ġ', ' '); // prettier-ignore
const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false };
const tokenizer = {
  version: '1.0',
  added_tokens: [],
  normalizer: null,
  post_processor: null,
  pre_tokenizer: byteLevel,
  decoder: byteLevel,
  model: { type: 'BPE', vocab: Object.fromEntries(letters.map((letter, id) => [letter, id])), merges: [] },
};

it.for<[string, Clients]>([
  ['4.3', v4],
  ['3.8', v3],
])('text generation of @huggingface/transformers %s tells what it says word by word', async ([, clients], context) => {
  await available(context, 'transformers.js', () => installBoth(clients));
  const more = { 'tokenizer.json': tokenizer, 'tokenizer_config.json': { tokenizer_class: 'GPT2Tokenizer' } };
  const env = { MODEL: write('streaming', 'batch_size', more), TEXT: spelled([4, 1, 5]), COUNT: '24' };
  const { text, words, tokens } = await outputAsPeer(clients, 'streaming.mjs', env, 0);
  const said = continued([4, 1, 5], 24);
  expect(text).toBe(spelled(said));
  expect(words.join('')).toBe(spelled(said.slice(3)));
  expect(words.length).toBeGreaterThan(2);
  expect(tokens.slice(-24)).toEqual(said.slice(3));
});
