// vectra (CommonJS) embeds SENTENCES through @huggingface/transformers, on DEVICE or the one it takes itself.
const { env } = require('@huggingface/transformers');
const { TransformersEmbeddings } = require('vectra');

env.allowRemoteModels = false;
env.localModelPath = process.env.MODELS;

async function main() {
  const embeddings = await TransformersEmbeddings.create({ device: process.env.DEVICE });
  const { status, output, message } = await embeddings.createEmbeddings(JSON.parse(process.env.SENTENCES));
  if (status !== 'success') throw new Error(message);
  console.log(JSON.stringify(output));
}
main();
