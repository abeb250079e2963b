// LangChain embeds SENTENCES through @huggingface/transformers: the first as a query, the others as documents.
import { env } from '@huggingface/transformers';
import { HuggingFaceTransformersEmbeddings } from '@langchain/community/embeddings/huggingface_transformers';

env.allowRemoteModels = false;
env.localModelPath = process.env.MODELS;
const embeddings = new HuggingFaceTransformersEmbeddings({ model: 'Xenova/all-MiniLM-L6-v2' });
const [query, ...documents] = JSON.parse(process.env.SENTENCES);
const vectors = await Promise.all([embeddings.embedQuery(query), embeddings.embedDocuments(documents)]);
console.log(JSON.stringify([vectors[0], ...vectors[1]]));
