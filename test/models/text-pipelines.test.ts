// A classifier of texts as scikit-learn's converter writes it: from strings to a label and a Map of probabilities.
import { describe, expect, it } from 'vitest';
import { expectFailure, ort, ours } from '../fixtures/engine.js';
import { model, node } from '../fixtures/onnx-writer.js';

const words = ['gut', 'schön', 'schlecht'];
const coefficients = [-1, -1.5, 2, 1, 1.5, -2];
const labels = ['negative', 'positive'];

const classifier = model({
  opset: 15,
  opsets: { 'ai.onnx.ml': 3, 'com.microsoft': 1 },
  nodes: [
    node('Reshape', ['text', 'flat'], ['row']),
    node('StringNormalizer', ['row'], ['low'], { attributes: { case_change_action: 'LOWER' } }),
    node('Tokenizer', ['low'], ['tokens'], {
      domain: 'com.microsoft',
      attributes: { mark: 0n, mincharnum: 1n, pad_value: '#', tokenexp: '[a-zäöüß]+' },
    }),
    node('TfIdfVectorizer', ['tokens'], ['counts'], {
      attributes: {
        mode: 'TF',
        min_gram_length: 1n,
        max_gram_length: 1n,
        max_skip_count: 0n,
        ngram_counts: [0n],
        ngram_indexes: [0n, 1n, 2n],
        pool_strings: words,
      },
    }),
    node('LinearClassifier', ['counts'], ['label', 'scores'], {
      domain: 'ai.onnx.ml',
      attributes: { coefficients, intercepts: [0, 0], classlabels_strings: labels, post_transform: 'SOFTMAX' },
    }),
    node('ZipMap', ['scores'], ['probabilities'], {
      domain: 'ai.onnx.ml',
      attributes: { classlabels_strings: labels },
    }),
  ],
  inputs: [{ name: 'text', type: 'string', shape: ['N', 1] }],
  outputs: [
    { name: 'label', type: 'string', shape: ['N'] },
    { name: 'probabilities', type: 'float32', shape: [], kind: 'maps' },
  ],
  initializers: [{ name: 'flat', type: 'int64', dims: [1], data: BigInt64Array.of(-1n) }],
});

const texts = ['Gut, gut und SCHÖN!', 'schlecht... nicht gut', 'schlechter 東京', ''];
// How often each of the words stands in each text.
const counts = [
  [2, 1, 0],
  [1, 0, 1],
  [0, 0, 0],
  [0, 0, 0],
];

const positive = (row: number[]): number => {
  const score = row.reduce((sum, count, i) => sum + count * coefficients[3 + i]!, 0);
  return 1 / (1 + Math.exp(-2 * score));
};

// onnxruntime-node gives no maps to JavaScript.
describe.runIf(ours)('a classifier of texts', () => {
  it.for(['disabled', 'all'])('takes strings and gives labels and maps at level %s', async (graphOptimizationLevel) => {
    const session = await ort.InferenceSession.create(classifier, { graphOptimizationLevel });
    // One row at a time and several together: the converter's tokens are padded to the longest row.
    for (const batch of [[0], [1], [3], [0, 1, 2], [3, 2, 1, 0]]) {
      const text = batch.map((i) => texts[i]!);
      const { label, probabilities } = await session.run({ text: new ort.Tensor('string', text, [text.length, 1]) });
      const wanted = batch.map((i) => positive(counts[i]!));
      expect(label.type).toBe('string');
      expect(label.dims).toEqual([batch.length]);
      wanted.forEach((value, i) => {
        if (value !== 0.5) expect(label.data[i]).toBe(labels[value > 0.5 ? 1 : 0]);
        expect(probabilities[i]).toBeInstanceOf(Map);
        expect([...probabilities[i].keys()]).toEqual(labels);
        expect(probabilities[i].get('positive')).toBeCloseTo(value, 5);
        expect(probabilities[i].get('negative')).toBeCloseTo(1 - value, 5);
      });
    }
    await session.release();
  });

  it('says what it was given in the place of strings', async () => {
    const session = await ort.InferenceSession.create(classifier);
    await expectFailure(() => session.run({ text: new ort.Tensor('float32', Float32Array.of(1), [1, 1]) }), {
      message: /text.*string/,
    });
    await session.release();
  });
});

describe.runIf(ours)('a dictionary', () => {
  it('may hold plain numbers where the converter declared tensors of one element', async () => {
    const source = model({
      opset: 15,
      opsets: { 'ai.onnx.ml': 3 },
      nodes: [
        node('DictVectorizer', ['row'], ['dense'], {
          domain: 'ai.onnx.ml',
          attributes: { string_vocabulary: ['weight', 'height', 'age'] },
        }),
      ],
      inputs: [{ name: 'row', type: 'float32', shape: [1], kind: 'map' }],
      outputs: [{ name: 'dense', type: 'float32', shape: [1, 3] }],
    });
    const session = await ort.InferenceSession.create(source);
    const row = new Map([
      ['height', 1.75],
      ['weight', 70.5],
      ['unheard of', 3],
    ]);
    const { dense } = await session.run({ row });
    expect(Array.from(dense.data)).toEqual([70.5, 1.75, 0]);
    await session.release();
  });
});
