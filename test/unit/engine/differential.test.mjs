import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import { difference } from '../../differential/compare.mjs';
import { sweep } from '../../differential/differential.mjs';
import { Engines, modelWriter } from '../../differential/engines.mjs';
import { generate } from '../../differential/generate.mjs';
import { minimise } from '../../differential/minimise.mjs';
import { decode, encode, floats } from '../../differential/numbers.mjs';
import { operators } from '../../differential/operators/index.mjs';
import { tolerances } from '../../differential/tolerance.mjs';
import { reference } from '../../differential/trial.mjs';
import { plain } from '../../differential/variants.mjs';
import { at } from '../../../scripts/lib/project.mjs';

const folder = at('build', 'differential');
const write = await modelWriter(folder);

describe('a differential test of random graphs', () => {
  it('finds no difference among the variants of a sample', async () => {
    const { graphs, refused, differences, faults } = await sweep({ seed: 1, count: 100, peer: false, shrink: false });
    expect({ differences, faults }).toEqual({ differences: [], faults: [] });
    expect(graphs).toBe(100);
    expect(refused).toBeLessThan(5);
  });

  it('writes the same graph for the same seed, and another for another', () => {
    for (let seed = 0; seed < 20; seed++) {
      const [once, again, other] = [seed, seed, seed + 1].map(generate);
      expect(again).toEqual(once);
      expect(Buffer.from(write(other.graph)).equals(Buffer.from(write(once.graph)))).toBe(false);
    }
  });

  it('draws every operator of its table', () => {
    const drawn = new Set();
    for (let seed = 0; seed < 1500; seed++) for (const { op } of generate(seed).graph.nodes) drawn.add(op);
    const named = Object.keys(operators).map((name) => name.replace('com.microsoft.', '').replace('+', ''));
    expect(named.filter((name) => !drawn.has(name))).toEqual([]);
  });

  it('has numbers of each floating type come back as they were', () => {
    for (const type of floats) {
      const numbers = [0, 1, -2.5, 0.0078125, 96, 2 ** -14, 3 * 2 ** -20, Infinity, -Infinity, NaN];
      expect([...decode({ type, data: encode(type, numbers) })]).toEqual(numbers);
    }
  });

  it('takes a step of rounding for none, and more for a difference', () => {
    const tensor = (data) => ({ type: 'float32', dims: [data.length], data: Float32Array.from(data) });
    const integers = (data) => ({ type: 'int32', dims: [data.length], data: Int32Array.from(data) });
    expect(difference(tensor([1, NaN, Infinity]), tensor([1.000001, NaN, Infinity]), 1e-6)).toBeUndefined();
    expect(difference(tensor([1, NaN]), tensor([1.001, NaN]), 1e-6)).toMatch(
      '1 of 2 elements of float32[2], first [0] 1 for',
    );
    expect(difference(tensor([Infinity]), tensor([-Infinity]), 1)).toBeDefined();
    expect(difference(tensor([0]), tensor([NaN]), 1)).toBeDefined();
    expect(difference(integers([3]), integers([4]), 0)).toBe('1 of 1 elements of int32[1], first [0] 3 for 4');
    expect(difference(integers([3]), tensor([3]), 0)).toBe('int32[1] for float32[1]');
  });

  describe('over an engine that is wrong', () => {
    const engines = new Engines(`${folder}/test`);
    afterAll(() => engines.stop());

    /** Answers with the negation of what Tanh gives. */
    const wrong = {
      run: async (_, { graph, feeds }) => {
        const nodes = graph.nodes.flatMap((node) =>
          node.op === 'Tanh'
            ? [
                { ...node, outputs: [`${node.outputs}_`] },
                { op: 'Neg', inputs: [`${node.outputs}_`], outputs: node.outputs },
              ]
            : [node],
        );
        return engines.play(write({ ...graph, nodes }), feeds, { options: plain });
      },
    };
    /** Graphs in which a Tanh stands in the middle. */
    function* subjects() {
      for (let seed = 0; ; seed++) {
        const one = generate(seed);
        const place = one.graph.nodes.findIndex(({ op }) => op === 'Tanh');
        if (!one.special && place > 6 && place < one.graph.nodes.length - 3) yield one;
      }
    }

    it('shrinks a graph to the node that is wrong', async () => {
      let small;
      for (const subject of subjects()) {
        small = await minimise(engines, write, subject, ['wrong', wrong]);
        if (small.found) break; // in others nothing comes of it: what follows takes the magnitude, say
      }
      expect(small.found.text).toMatch(/elements of/);
      expect(small.subject.graph.nodes.length).toBeLessThan(5);
      expect(small.subject.graph.nodes.map(({ op }) => op)).toContain('Tanh');
    });

    it('allows less than a thousandth of what most float32 values are', async () => {
      const shares = [];
      for (let seed = 100; seed < 130; seed++) {
        const { graph, feeds, kinds } = generate(seed);
        const { known } = await reference(engines, write, { graph, feeds, kinds });
        const allowed = tolerances(graph, known);
        for (const [name, { type, data }] of Object.entries(known)) {
          if (type === 'float32')
            shares.push(allowed[name] / Math.max(1e-30, ...data.map(Math.abs).filter(Number.isFinite)));
        }
      }
      shares.sort((a, b) => a - b);
      expect(shares[Math.floor(0.85 * shares.length)]).toBeLessThan(1e-3);
    });
  });

  it('stands among the commands', () => {
    expect(JSON.parse(readFileSync(at('package.json'), 'utf8')).scripts.differential).toBe(
      'node test/differential/differential.mjs',
    );
  });
});
