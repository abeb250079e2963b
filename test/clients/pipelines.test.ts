import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { projectRoot } from '../../scripts/lib/engine.mjs';
import { fetchModel } from '../../scripts/lib/models.mjs';
import { available } from '../fixtures/available.js';
import { type Clients, installBoth, outputAsPeer, v3, v4 } from './install.js';
import { heads, writeBert, writePictureClassifier } from './small-models.js';

const models = mkdtempSync(join(tmpdir(), 'infernode-pipelines-'));
afterAll(() => rmSync(models, { recursive: true }));

const tags = ['O', 'B-PER', 'I-PER', 'B-LOC', 'I-LOC'];
const special = { pad_token: '[PAD]', sep_token: '[SEP]', cls_token: '[CLS]', mask_token: '[MASK]', unk_token: '[UNK]' };

function write(folder: string, name: string, value: object): void {
  mkdirSync(join(models, folder), { recursive: true });
  writeFileSync(join(models, folder, name), JSON.stringify(value));
}

/** Models of the tasks, with the tokenizer of a real one. */
function writeModels(tokenizer: string): void {
  const labels = (names: string[]) => ({ id2label: Object.fromEntries(names.entries()) });
  const bert = (folder: string, task: keyof typeof heads) => {
    const own = task === 'token-classification' ? labels(tags) : task === 'text-classification' ? labels(['bad', 'good']) : {}; // prettier-ignore
    write(folder, 'config.json', { model_type: 'bert', ...own });
    write(folder, 'tokenizer_config.json', { tokenizer_class: 'BertTokenizer', do_lower_case: true, model_max_length: 64, ...special }); // prettier-ignore
    copyFileSync(tokenizer, join(models, folder, 'tokenizer.json'));
    writeBert(join(models, folder), task, folder === 'external-data' ? 'external' : 'fp32');
  };
  for (const task of Object.keys(heads) as (keyof typeof heads)[]) bert(task, task);
  bert('external-data', 'text-classification');
  writeBert(join(models, 'feature-extraction'), 'feature-extraction', 'fp16');
  write('image-classification', 'config.json', { model_type: 'vit', ...labels(Array.from({ length: 10 }, (_, i) => `class ${i}`)) }); // prettier-ignore
  const size = { height: 224, width: 224 };
  const half = [0.5, 0.5, 0.5];
  write('image-classification', 'preprocessor_config.json', { image_processor_type: 'ViTImageProcessor', do_resize: true, size, resample: 2, do_rescale: true, rescale_factor: 1 / 255, do_normalize: true, image_mean: half, image_std: half }); // prettier-ignore
  writePictureClassifier(join(models, 'image-classification'), 10);
}

it.for<[string, Clients]>([
  ['4.3', v4],
  ['3.8', v3],
])(
  "@huggingface/transformers %s does its tasks on models made here: features, classes of texts, of tokens and of pictures, masks, questions, float16, external data, device 'auto', workers",
  async ([, clients], context) => {
    await available(context, 'transformers.js', () => installBoth(clients));
    writeModels(await available(context, 'a tokenizer', () => fetchModel('minilm-tokenizer')));
    const env = { MODELS: models, PICTURE: join(projectRoot, 'examples', 'ocr', 'picture.png'), DEVICE: 'auto' };
    const answers = await outputAsPeer(clients, 'pipelines.mjs', env, 1e-4, { env: { DEVICE: 'cpu' } });
    expect(answers.features.map((row: number[]) => row.length)).toEqual([32, 32]);
    for (const [first, second] of answers.classes) expect(first.score + second.score).toBeCloseTo(1, 5);
    expect(answers.tags.length).toBeGreaterThan(9);
    expect(answers.filled).toHaveLength(5);
    expect('my name is sarah and i live in london.').toContain(answers.answer.answer.toLowerCase());
    expect(answers.pictures[0]).toEqual(answers.pictures[1]);
    expect(answers.halvesAgree).toBe(true);
    expect(answers.external).toEqual([answers.workers[0][0]]);
  },
);
