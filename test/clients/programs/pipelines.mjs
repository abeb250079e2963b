// @huggingface/transformers runs the tasks whose models lie in MODELS, in this thread and in workers.
import { Worker } from 'node:worker_threads';
import { env, pipeline } from '@huggingface/transformers';

env.allowRemoteModels = false;
env.localModelPath = process.env.MODELS;
const device = process.env.DEVICE; // undefined: the one that it takes by itself
const options = { dtype: 'fp32', device };

const sentence = 'My name is Sarah and I live in London.';
const answers = {};

const extract = await pipeline('feature-extraction', 'feature-extraction', options);
const vectors = await extract([sentence, 'The cat sleeps.'], { pooling: 'mean', normalize: true });
answers.features = vectors.tolist();

const classify = await pipeline('text-classification', 'text-classification', options);
answers.classes = await classify(['I love it!', 'It broke after a day, and nobody answers my letters.'], { top_k: 2 });

const tag = await pipeline('token-classification', 'token-classification', options);
answers.tags = await tag(sentence, { ignore_labels: [] });

const fill = await pipeline('fill-mask', 'fill-mask', options);
answers.filled = await fill('The capital of France is [MASK].');

const ask = await pipeline('question-answering', 'question-answering', options);
answers.answer = await ask('Where does Sarah live?', sentence);

const look = await pipeline('image-classification', 'image-classification', options);
answers.pictures = await look([process.env.PICTURE, process.env.PICTURE], { top_k: 3 });

const halves = await pipeline('feature-extraction', 'feature-extraction', { dtype: 'fp16', device });
const [inHalves] = (await halves(sentence, { pooling: 'mean', normalize: true })).tolist();
answers.halvesAgree = inHalves.every((value, i) => Math.abs(value - answers.features[0][i]) < 2e-3);

const beside = await pipeline('text-classification', 'external-data', { ...options, use_external_data_format: true });
answers.external = await beside('I love it!');

for (const pipe of [extract, classify, tag, fill, ask, look, halves, beside]) await pipe.dispose();

const work = `
  import { parentPort, workerData } from 'node:worker_threads';
  import { env, pipeline } from '@huggingface/transformers';
  env.allowRemoteModels = false;
  env.localModelPath = process.env.MODELS;
  const classify = await pipeline('text-classification', 'text-classification', workerData.options);
  parentPort.postMessage(await classify(workerData.texts));`;
const texts = [['I love it!'], ['It broke after a day.', sentence]];
answers.workers = await Promise.all(
  texts.map(async (part) => {
    const worker = new Worker(work, { eval: true, workerData: { options, texts: part } }); // a module, as this is
    const answer = await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
    await worker.terminate();
    return answer;
  }),
);
console.log(JSON.stringify(answers));
