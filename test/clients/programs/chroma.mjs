// Chroma's default embedding function embeds SENTENCES.
import { DefaultEmbeddingFunction } from '@chroma-core/default-embed';
import { env } from '@huggingface/transformers';

env.allowRemoteModels = false;
env.localModelPath = process.env.MODELS;
console.log(JSON.stringify(await new DefaultEmbeddingFunction().generate(JSON.parse(process.env.SENTENCES))));
