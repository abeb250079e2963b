import { describe, expect, it } from 'vitest';
import { expectFailure, floats, ort, ours } from '../../fixtures/engine.js';
import { model, node, oneNode, type TensorInfo } from '../../fixtures/onnx-writer.js';

const { InferenceSession } = ort;
const learning = { domain: 'ai.onnx.ml', model: { opsets: { 'ai.onnx.ml': 1 } } };

/** Scores of each row as a map from labels. */
const zipMap = (labels: Record<string, readonly (bigint | string)[]>, key: 'string' | 'int64'): Uint8Array =>
  oneNode(
    'ZipMap',
    [{ name: 'x', type: 'float32', shape: ['n', 2] }],
    [{ name: 'z', type: 'float32', shape: [], kind: 'maps', key }],
    { ...learning, attributes: labels },
  );

const vectorizer = (key: 'string' | 'int64', type: TensorInfo['type'], vocabulary: readonly (bigint | string)[]) =>
  oneNode(
    'DictVectorizer',
    [{ name: 'x', type, shape: [], kind: 'map', key }],
    [{ name: 'y', type, shape: [1, vocabulary.length] }],
    { ...learning, attributes: { [`${key}_vocabulary`]: vocabulary } },
  );

async function answer(bytes: Uint8Array, feeds: Record<string, unknown>): Promise<any> {
  const session = await InferenceSession.create(bytes);
  try {
    return Object.values(await session.run(feeds))[0];
  } finally {
    await session.release();
  }
}

// onnxruntime-node has neither maps nor sequences of maps.
describe.runIf(ours)('maps', () => {
  it('come out as arrays of Map', async () => {
    const x = floats([1, 2, 3, 4], [2, 2]);
    expect(await answer(zipMap({ classlabels_strings: ['a', 'b'] }, 'string'), { x })).toEqual([
      new Map([
        ['a', 1],
        ['b', 2],
      ]),
      new Map([
        ['a', 3],
        ['b', 4],
      ]),
    ]);
    const numbered = await answer(zipMap({ classlabels_int64s: [7n, -1n] }, 'int64'), { x: floats([1, 2], [1, 2]) });
    expect(numbered).toEqual([
      new Map([
        [7n, 1],
        [-1n, 2],
      ]),
    ]);
    const none = await answer(zipMap({ classlabels_strings: ['a', 'b'] }, 'string'), { x: floats([], [0, 2]) });
    expect(none).toEqual([]);
  });

  it('go in with strings or integers as keys and any type of value', async () => {
    const words = await answer(vectorizer('string', 'float32', ['q', 'a']), { x: new Map([['a', 1.5]]) });
    expect([...words.data]).toEqual([0, 1.5]);
    const doubles = await answer(vectorizer('string', 'float64', ['a']), { x: new Map([['a', 0.1]]) });
    expect([...doubles.data]).toEqual([0.1]);
    const keys = new Map<bigint | number, string>([
      [3n, 'three'],
      [4, 'four'],
    ]);
    const strings = await answer(vectorizer('int64', 'string', [4n, 3n, 9n]), { x: keys });
    expect(strings.data).toEqual(['four', 'three', '']);
    const counts = await answer(vectorizer('string', 'int64', ['a', 'b']), { x: new Map([['b', 5n]]) });
    expect([...counts.data]).toEqual([0n, 5n]);
  });

  it('go through in sequences', async () => {
    const through = model({
      nodes: [],
      inputs: [{ name: 'x', type: 'float32', shape: [], kind: 'maps' }],
      outputs: [{ name: 'x', type: 'float32', shape: [], kind: 'maps' }],
    });
    const x = [new Map([['a', 1]]), new Map([['b', 2]])];
    expect(await answer(through, { x })).toEqual(x);
  });

  it('are refused where their kind or their keys are not those of the model', async () => {
    const session = await InferenceSession.create(vectorizer('string', 'float32', ['a']));
    expect(session.inputMetadata[0]).toMatchObject({ name: 'x', isTensor: false });
    await expectFailure(() => session.run({ x: floats([1]) }), { type: TypeError, message: /'x' must be a Map/ });
    await expectFailure(() => session.run({ x: new Map([[1n, 1]]) }), {
      message: /int64 keys where string keys are expected/,
      code: 'INVALID_ARGUMENT',
      fields: { input: 'x' },
    });
    await session.release();
  });

  it('pass from one operator to the next', async () => {
    const chain = model({
      nodes: [
        node('DictVectorizer', ['m'], ['v'], { domain: 'ai.onnx.ml', attributes: { string_vocabulary: ['a', 'b'] } }),
        node('ZipMap', ['v'], ['z'], { domain: 'ai.onnx.ml', attributes: { classlabels_int64s: [1n, 2n] } }),
      ],
      inputs: [{ name: 'm', type: 'float32', shape: [], kind: 'map' }],
      outputs: [{ name: 'z', type: 'float32', shape: [], kind: 'maps', key: 'int64' }],
      opsets: { 'ai.onnx.ml': 1 },
    });
    expect(await answer(chain, { m: new Map([['b', 4]]) })).toEqual([
      new Map([
        [1n, 0],
        [2n, 4],
      ]),
    ]);
  });
});
