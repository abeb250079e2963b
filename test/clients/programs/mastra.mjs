// @mastra/fastembed embeds SENTENCES by a model of the user's own.
import { join } from 'node:path';
import { EmbeddingModel, FlagEmbedding } from '@mastra/fastembed';

const modelAbsoluteDirPath = join(process.env.MODELS, 'Xenova', 'all-MiniLM-L6-v2');
const modelName = join('onnx', 'model.onnx');
const embedder = await FlagEmbedding.init({
  model: EmbeddingModel.CUSTOM,
  modelAbsoluteDirPath,
  modelName,
  maxLength: 32,
});
const vectors = [];
for await (const batch of embedder.embed(JSON.parse(process.env.SENTENCES), 3)) vectors.push(...batch);
console.log(JSON.stringify(vectors.map((vector) => [...vector])));
