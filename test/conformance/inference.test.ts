import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { engineName, loadEngine } from '../../scripts/lib/engine.mjs';
import { available } from '../fixtures/available.js';
import {
  contradicts,
  contradictsValue,
  fullyKnown,
  inferred,
  missing,
  parseSaid,
  saidOf,
  type Said,
} from './lib/inference.mjs';
import { listCases, readDataSets, suiteFolder, type Case } from './lib/suite.mjs';

/** Written by test/generators/onnx-inference.py: what the package infers of each case, with sizes and with symbols. */
const wheel = JSON.parse(readFileSync(new URL('../fixtures/onnx-inference.json', import.meta.url), 'utf8')) as Record<
  string,
  [sizes: string, symbols: string]
>;

/** Refused at load: this engine does not differentiate. */
const refused = new Set(['simple/test_gradient_of_add', 'simple/test_gradient_of_add_and_mul']);

/** Operators whose cases have dims that follow from the values of inputs. */
const byValues: Record<string, string> = {
  Compress: 'how many conditions are true',
  ImageDecoder: 'the size of the image',
  Loop: 'how often the body runs',
  NonMaxSuppression: 'how many boxes are left',
  NonZero: 'how many elements are not zero',
  OneHot: 'depth, fed as a float',
  Range: 'start, limit and delta, fed as floats',
  Resize: 'scales, fed',
  StringNormalizer: 'how many strings are no stop words',
  StringSplit: 'the most pieces of a string',
  Unique: 'how many values differ',
  Upsample: 'scales, fed',
};
const byValuesCases: Record<string, string> = {
  'simple/test_sequence_model1': 'elements of two shapes in a sequence',
  'simple/test_sequence_model4': 'how many elements a sequence has',
  'simple/test_sequence_model5': 'pieces of several lengths in a sequence',
  'node/test_affine_grid_2d_expanded': 'sizes that come out of the branches of If',
  'node/test_affine_grid_2d_align_corners_expanded': 'sizes that come out of the branches of If',
  'node/test_affine_grid_3d_expanded': 'sizes that come out of the branches of If',
  'node/test_affine_grid_3d_align_corners_expanded': 'sizes that come out of the branches of If',
};

/** Where the package is wrong, says the same in another way, or takes on trust what this engine does not. */
const explained: readonly [cases: RegExp, why: string][] = [
  [/^node\/test_attention_/, 'takes a symbolic dim for 0'],
  [/^node\/test_stft/, 'counts the bins of the whole spectrum where onesided asks for half of it'],
  [/^node\/test_loop16_seq_none$/, 'an optional sequence may come back when the loop does not run'],
  [
    /^node\/test_(linear_attention_.*_expanded|scan9_sum|scan9_multi_state)$/,
    'trusts the body of Scan to keep the dims of a state',
  ],
  [
    /^node\/test_(causal_conv_with_state|linear_attention)_/,
    'calls a state by its past; here its size is one of the weights',
  ],
];

interface Statement {
  item: Case;
  id: string;
  file: Said[];
  sizes: Said[];
  symbols: Said[];
}

describe.runIf(engineName() === 'infernode')('inference over the ONNX backend test suite', () => {
  const statements: Statement[] = [];
  const failures: string[] = [];

  beforeAll(async (context) => {
    const suite = await available(context as never, 'the conformance suite', suiteFolder);
    const ort = await loadEngine();
    for (const item of listCases(suite)) {
      const id = `${item.kind}/${item.name}`;
      try {
        const file = await saidOf(ort, join(item.folder, 'model.onnx'), { logSeverityLevel: 4 });
        const sizes = await inferred(ort, item, { symbolic: false });
        statements.push({ item, id, file, sizes, symbols: await inferred(ort, item, { symbolic: true }) });
      } catch (error) {
        failures.push(id);
        if (!refused.has(id)) throw new Error(`${id}: ${(error as Error).message}`, { cause: error });
      }
    }
  });

  it('takes every model without the types of its results', () => {
    expect(failures.sort()).toEqual([...refused]);
    expect(statements).toHaveLength(2034);
  });

  it('says nothing that a real output contradicts', () => {
    const wrong: string[] = [];
    for (const { item, id, file, sizes, symbols } of statements) {
      for (const { outputs } of readDataSets(item)) {
        for (const { name, value } of outputs) {
          const at = item.model.outputs.findIndex((output) => output.name === name);
          for (const said of [file, sizes, symbols]) {
            const why = contradictsValue(said[at] as Said, value);
            if (why !== undefined) wrong.push(`${id} '${name}': ${why}`);
          }
        }
      }
    }
    expect(wrong).toEqual([]);
  });

  it('knows every output whose shape follows from the shapes of inputs and from constants', () => {
    const unknown = statements.filter(({ sizes }) => !sizes.every(fullyKnown));
    const unexplained = unknown.filter(({ id, item }) => !(item.operator in byValues) && !(id in byValuesCases));
    expect(unexplained.map(({ id, sizes }) => `${id}: ${JSON.stringify(sizes)}`)).toEqual([]);
    const stale = Object.keys(byValues).filter((operator) => unknown.every(({ item }) => item.operator !== operator));
    expect(stale).toEqual([]);
    expect(statements.length - unknown.length).toBeGreaterThanOrEqual(1940);
  });

  it('agrees with the onnx package and knows at least as much', () => {
    const differences: string[] = [];
    const used = new Set<RegExp>();
    for (const { id, sizes, symbols } of statements) {
      for (const [ours, words] of [sizes, symbols].map((said, i) => [said, wheel[id]?.[i]] as const)) {
        expect(words, id).toBeDefined();
        if (words === undefined || words.startsWith('!')) continue;
        words.split(' ').forEach((word, i) => {
          const said = ours[i] as Said;
          const theirs = parseSaid(word);
          const difference = contradicts(said, theirs) ?? missing(said, theirs);
          if (difference === undefined) return;
          const reason = explained.find(([cases]) => cases.test(id));
          if (reason) used.add(reason[0]);
          else differences.push(`${id} output ${i}: ${difference}`);
        });
      }
    }
    expect(differences).toEqual([]);
    expect(used.size).toBe(explained.length);
  });
});
