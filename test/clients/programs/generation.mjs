// @huggingface/transformers continues the token ids in PROMPTS (rows of one length) by the model in the folder MODEL.
import { AutoModelForCausalLM, env, Tensor } from '@huggingface/transformers';
import { basename, dirname } from 'node:path';

env.allowRemoteModels = false;
env.localModelPath = dirname(process.env.MODEL);
const prompts = JSON.parse(process.env.PROMPTS);
const dims = [prompts.length, prompts[0].length];
const int64 = (values) => new Tensor('int64', BigInt64Array.from(values, BigInt), dims);

const model = await AutoModelForCausalLM.from_pretrained(basename(process.env.MODEL), { dtype: 'fp32' });
const ids = await model.generate({
  input_ids: int64(prompts.flat()),
  attention_mask: int64(prompts.flat().map(() => 1)),
  max_new_tokens: Number(process.env.COUNT),
  do_sample: false,
});
console.log(JSON.stringify(ids.tolist().map((row) => row.map(Number))));
