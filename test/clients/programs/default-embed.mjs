// chromadb-default-embed, Chroma's fork of transformers.js 2, embeds SENTENCES.
import { createRequire } from 'node:module';

const ort = createRequire(`${process.cwd()}/`)('onnxruntime-node');
ort.env.ownTensorData = true; // before the first tensor is made
const { env, pipeline } = await import('chromadb-default-embed');
env.allowRemoteModels = false;
env.localModelPath = process.env.MODELS;
const extract = await pipeline('feature-extraction', 'Xenova/all-MiniLM-L6-v2');
const vectors = await extract(JSON.parse(process.env.SENTENCES), { pooling: 'mean', normalize: true });
console.log(JSON.stringify(vectors.tolist()));
