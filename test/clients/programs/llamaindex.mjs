// LlamaIndex embeds SENTENCES through @huggingface/transformers, all at once.
import { env } from '@huggingface/transformers';
import { HuggingFaceEmbedding } from '@llamaindex/huggingface';

env.allowRemoteModels = false;
env.localModelPath = process.env.MODELS;
const embedding = new HuggingFaceEmbedding({ modelOptions: { dtype: 'fp32' } });
const sentences = JSON.parse(process.env.SENTENCES);
console.log(JSON.stringify(await Promise.all(sentences.map((sentence) => embedding.getTextEmbedding(sentence)))));
