// What kind of file some bytes are: Magika looks at the first and the last 1024 bytes.
import { readFileSync } from 'node:fs';

const isSpace = (byte) => byte === 32 || (byte >= 9 && byte <= 13);

function stripped(bytes) {
  let [from, to] = [0, bytes.length];
  while (from < to && isSpace(bytes[from])) from++;
  while (to > from && isSpace(bytes[to - 1])) to--;
  return bytes.subarray(from, to);
}

/** @returns {Promise<{ label: string, score: number }>} */
export async function fileType(ort, { model, config }, bytes, options) {
  const { beg_size, end_size, block_size, padding_token, target_labels_space } = JSON.parse(
    readFileSync(config, 'utf8'),
  );
  const head = stripped(bytes.subarray(0, block_size)).subarray(0, beg_size);
  const tail = stripped(bytes.subarray(Math.max(0, bytes.length - block_size))).subarray(-end_size);
  const input = new Int32Array(beg_size + end_size).fill(padding_token);
  input.set(head, 0);
  input.set(tail, input.length - tail.length); // the tail is padded in front
  const session = await ort.InferenceSession.create(model, options);
  const { target_label } = await session.run({ bytes: new ort.Tensor('int32', input, [1, input.length]) });
  await session.release();
  const score = Math.max(...target_label.data);
  return { label: target_labels_space[target_label.data.indexOf(score)], score };
}
