import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { fetchModel } from '../../scripts/lib/models.mjs';
import { available } from '../fixtures/available.js';
import { cosine } from '../models/pipelines/minilm.mjs';
import { type Clients, installBoth, outputAsPeer, type PeerRun, v3, v4, xenova } from './install.js';

// all-MiniLM-L6-v2, laid out as the hub has it and as fastembed keeps it.
const models = mkdtempSync(join(tmpdir(), 'infernode-embeddings-'));
afterAll(() => rmSync(models, { recursive: true }));
let fetched: Error | undefined;
beforeAll(async () => {
  const place = join(models, 'Xenova', 'all-MiniLM-L6-v2');
  mkdirSync(join(place, 'onnx'), { recursive: true });
  const write = (name: string, value: object) => writeFileSync(join(place, name), JSON.stringify(value));
  write('config.json', { model_type: 'bert', architectures: ['BertModel'], hidden_size: 384, pad_token_id: 0 });
  write('tokenizer_config.json', { tokenizer_class: 'BertTokenizer', do_lower_case: true, model_max_length: 512, pad_token: '[PAD]', sep_token: '[SEP]', cls_token: '[CLS]', mask_token: '[MASK]', unk_token: '[UNK]' }); // prettier-ignore
  write('special_tokens_map.json', { pad_token: '[PAD]', sep_token: '[SEP]', cls_token: '[CLS]', mask_token: '[MASK]', unk_token: '[UNK]' }); // prettier-ignore
  try {
    copyFileSync(await fetchModel('minilm-tokenizer'), join(place, 'tokenizer.json'));
    for (const name of ['model', 'model_quantized'])
      copyFileSync(await fetchModel('minilm-int8'), join(place, 'onnx', `${name}.onnx`));
  } catch (error) {
    fetched = error as Error;
  }
});

const sentences = [
  'A man is eating food.',
  'Someone eats a piece of bread.',
  'The spacecraft landed on the moon.',
  'Astronauts reached the lunar surface.',
];

it.for<[string, Clients, string, PeerRun?]>([
  ['fastembed', v4, 'fastembed.mjs'],
  ['@mastra/fastembed', v4, 'mastra.mjs'],
  // 'auto' wants CUDA of onnxruntime-node too, and ends there where it has none.
  ["vectra, on the device 'auto',", v4, 'vectra.cjs', { env: { DEVICE: 'cpu' } }],
  ['@chroma-core/default-embed', v3, 'chroma.mjs'],
  ['@langchain/community', v3, 'langchain.mjs'],
  ['@llamaindex/huggingface', v3, 'llamaindex.mjs'],
  // It runs on no onnxruntime-node of today: the answers are those of another client.
  [
    'chromadb-default-embed, through the switch env.ownTensorData,',
    xenova,
    'default-embed.mjs',
    { clients: v4, file: 'vectra.cjs', env: { DEVICE: 'cpu' } },
  ],
])('%s tells sentences of one meaning from others', async ([, clients, program, peer], context) => {
  await available(context, 'the clients and all-MiniLM-L6-v2', async () => {
    if (fetched) throw fetched;
    await installBoth(clients, peer?.clients);
  });
  const env = { MODELS: models, SENTENCES: JSON.stringify(sentences) };
  const vectors = await outputAsPeer(clients, program, env, 1e-4, peer);
  expect(vectors.map((vector: number[]) => vector.length)).toEqual([384, 384, 384, 384]);
  const near = (a: number, b: number) => cosine(vectors[a], vectors[b]);
  for (const other of [near(0, 2), near(0, 3), near(1, 2), near(1, 3)]) {
    expect(near(0, 1)).toBeGreaterThan(other + 0.2);
    expect(near(2, 3)).toBeGreaterThan(other + 0.2);
  }
});
