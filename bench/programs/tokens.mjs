// A token loop: a prompt, then one token after another by the likeliest, with keys and values kept from run to run.
import { texts } from './texts.mjs';

export const model = 'llama_tiny';
export const unit = 'tokens';

const [heads, width, length] = [4, 64, 64];

function likeliest({ data, dims }) {
  const from = data.length - dims[2]; // the last token's
  let best = from;
  for (let i = from + 1; i < data.length; i++) if (data[i] > data[best]) best = i;
  return best - from;
}

/** `prompt` and `length` tokens more, each told to `onToken`, until that says no. */
async function generate({ Tensor }, session, prompt, onToken = () => true) {
  const int64 = (values) => new Tensor('int64', BigInt64Array.from(values, BigInt), [1, values.length]);
  const kept = session.inputNames.filter((name) => name.startsWith('past_key_values'));
  let past = Object.fromEntries(
    kept.map((name) => [name, new Tensor('float32', new Float32Array(), [1, heads, 0, width])]),
  );
  const ids = [...prompt];
  let next = prompt;
  for (let i = 0; i < length; i++) {
    const feeds = { input_ids: int64(next), attention_mask: int64(ids.map(() => 1)), ...past };
    const outputs = await session.run(feeds);
    past = Object.fromEntries(kept.map((name) => [name, outputs[name.replace('past_key_values', 'present')]]));
    next = [likeliest(outputs.logits)];
    ids.push(...next);
    if (!onToken(next[0])) break;
  }
  return ids;
}

export async function start({ ort, path }) {
  const session = await ort.InferenceSession.create(path);
  const prompts = texts(16, 32000);
  return {
    answer: await generate(ort, session, prompts[0]),
    async work(seconds) {
      const end = performance.now() + seconds * 1000;
      let count = 0;
      const onToken = () => ++count && performance.now() < end;
      for (let i = 0; performance.now() < end; i++) await generate(ort, session, prompts[i % prompts.length], onToken);
      return count;
    },
    stop: () => session.release(),
  };
}
