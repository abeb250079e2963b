// Texts as token ids, of the lengths that sentences have.
import { randomNumbers } from '../architectures/workloads.mjs';

/** `count` lists of 6 to 40 ids, the same on every machine. */
export function texts(count, vocabulary, seed = 5) {
  const next = randomNumbers(seed);
  const id = () => Math.floor(next() * vocabulary);
  return Array.from({ length: count }, () => Array.from({ length: 6 + Math.floor(next() * 35) }, id));
}

/** A sentence's vector by MiniLM: the mean of what it says of each token. */
export async function embed({ Tensor }, session, ids) {
  const tensor = (values) => new Tensor('int64', BigInt64Array.from(values, BigInt), [1, ids.length]);
  const { last_hidden_state } = await session.run({
    input_ids: tensor(ids),
    attention_mask: tensor(ids.map(() => 1)),
    token_type_ids: tensor(ids.map(() => 0)),
  });
  const [, length, width] = last_hidden_state.dims;
  const mean = new Float32Array(width);
  for (let i = 0; i < length * width; i++) mean[i % width] += last_hidden_state.data[i] / length;
  return mean;
}
