// @huggingface/transformers continues TEXT by the model in the folder MODEL, and tells it word by word.
import { basename, dirname } from 'node:path';
import { env, pipeline, TextStreamer } from '@huggingface/transformers';

env.allowRemoteModels = false;
env.localModelPath = dirname(process.env.MODEL);
const generate = await pipeline('text-generation', basename(process.env.MODEL), { dtype: 'fp32' });
const [words, tokens] = [[], []];
const streamer = new TextStreamer(generate.tokenizer, {
  skip_prompt: true,
  callback_function: (text) => words.push(text),
  token_callback_function: (ids) => tokens.push(...ids.map(Number)),
});
const options = { max_new_tokens: Number(process.env.COUNT), do_sample: false, streamer };
const [{ generated_text }] = await generate(process.env.TEXT, options);
console.log(JSON.stringify({ text: generated_text, words, tokens }));
