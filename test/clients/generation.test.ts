import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { available } from '../fixtures/available.js';
import { model, node, type Dim } from '../fixtures/onnx-writer.js';
import { install, output, v4 } from './install.js';

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

// transformers.js makes an empty cache of a model's symbols. It knows `batch_size`; every other one is 0 to it.
it.for<[string, Dim]>([
  ['batch_size', 'batch_size'],
  ['N', 'N'],
  ['decoder_batch', 'decoder_batch'],
  ['nothing', ''],
])('text generation of transformers.js runs where the batch symbol is called %s', async ([name, batch], context) => {
  const folder = await available(context, 'the client packages', () => install(v4));
  const place = join(scratch, name);
  mkdirSync(join(place, 'onnx'), { recursive: true });
  const config = { model_type: 'gpt2', vocab_size: tokens, n_layer: 1, n_head: heads, n_embd: heads * width };
  writeFileSync(join(place, 'config.json'), JSON.stringify(config));
  writeFileSync(join(place, 'onnx', 'model.onnx'), decoder(batch));
  for (const prompts of [[[3, 1, 4]], [[2, 7], [5, 5]]]) { // prettier-ignore
    const env = { MODEL: place, PROMPTS: JSON.stringify(prompts), COUNT: '10' };
    expect(await output(folder, 'generation.mjs', env)).toEqual(prompts.map((prompt) => continued(prompt, 10)));
  }
});
