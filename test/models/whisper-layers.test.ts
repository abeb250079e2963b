// Where weights and activations are int8, one activation that rounds the other way in an early layer moves all later ones: any
// two engines, and any two levels of one, end up further apart than a layer can bring them. So the encoder is cut at its
// residual sums, and each part gets what onnxruntime-node computed up to there.
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { EngineProcess } from '../../scripts/lib/engine-process.mjs';
import { fetchModel } from '../../bench/models/fetch-models.mjs';
import { engineName } from '../../scripts/lib/engine.mjs';
import { peerFolder } from '../../scripts/lib/peer.mjs';
import { available } from '../fixtures/available.js';
import { SliceableModel } from '../fixtures/model-slice.js';
import type { TensorInfo } from '../fixtures/onnx-writer.js';
import { type Values, withEngine, worstError } from './agreement.js';
import { speech, whisperSpectrogram } from './pipelines/audio.mjs';

const minutes = 60_000;
const tolerance = 2e-2;
const layers = [0, 1, 2, 3];

/** Each part's inputs and outputs: the convolutions, the two halves of each layer, and the last normalization. */
const parts: [inputs: string[], outputs: string[]][] = [
  [['input_features'], ['/Add_2_output_0']],
  ...layers.flatMap((layer): [string[], string[]][] => {
    const before = layer === 0 ? '/Add_2_output_0' : `/layers.${layer - 1}/Add_1_output_0`;
    const attended = `/layers.${layer}/Add_output_0`;
    return [
      [[before], [attended, `encoder_attentions.${layer}`]],
      [[attended], [`/layers.${layer}/Add_1_output_0`]],
    ];
  }),
  [[`/layers.${layers.at(-1)!}/Add_1_output_0`], ['last_hidden_state']],
];

const floats = (names: string[]): TensorInfo[] => names.map((name) => ({ name, type: 'float32' }));

it(
  'each part of the int8 Whisper encoder gives what onnxruntime-node gives for the same values',
  async (context) => {
    await available(context, 'onnxruntime-node', peerFolder);
    const [encoder, ...sounds] = await available(context, 'Whisper and speech', () =>
      Promise.all(['whisper-encoder', 'speech-front-center', 'speech-side-right'].map((name) => fetchModel(name))),
    );
    const model = new SliceableModel(readFileSync(encoder!));
    const answer = async (process: EngineProcess, source: Uint8Array | string, feeds: Values, level: string) => {
      const { id } = await process.create(source, { logSeverityLevel: 3, graphOptimizationLevel: level });
      const outputs = (await process.run(id, feeds)) as Values;
      await process.release(id);
      return outputs;
    };

    // What the peer computes along the way, in the model as it is but for more outputs.
    const watched = model.slice(floats(['input_features']), floats(parts.flatMap(([, outputs]) => outputs)));
    const values = await withEngine('peer', {}, async (peer) => {
      const runs: Values[] = [];
      for (const sound of sounds) {
        const features = { type: 'float32', dims: [1, 80, 3000], data: whisperSpectrogram(speech(sound)) };
        const along = await answer(peer, watched, { input_features: features }, 'disabled');
        const { last_hidden_state } = await answer(peer, encoder!, { input_features: features }, 'disabled');
        expect(
          worstError({ last_hidden_state: along['last_hidden_state']! }, { last_hidden_state: last_hidden_state! })
            .error,
        ).toBe(0);
        runs.push({ ...along, input_features: features });
      }
      return runs;
    });
    const [first, second] = values.map(({ last_hidden_state }) => ({ last_hidden_state: last_hidden_state! }));
    expect(worstError(second!, first!).error).toBeGreaterThan(10 * tolerance);

    const disagreements: string[] = [];
    await withEngine(engineName(), {}, async (engine) => {
      for (const [inputs, outputs] of parts) {
        const part = model.slice(floats(inputs), floats(outputs));
        for (const all of values) {
          const some = (names: string[]) => Object.fromEntries(names.map((name) => [name, all[name]!]));
          for (const level of ['disabled', 'all']) {
            const { error, output } = worstError(await answer(engine, part, some(inputs), level), some(outputs));
            if (!(error <= tolerance)) disagreements.push(`level ${level}: ${error} in ${output}`);
          }
        }
      }
    });
    expect(disagreements).toEqual([]);

    // The parts leave no node out and, but for constants, have none in common.
    const constants = new Set(model.made('Constant'));
    const made = parts.flatMap(([inputs, outputs]) => model.madeBetween(inputs, outputs));
    const computed = made.filter((name) => !constants.has(name));
    const whole = model.madeBetween(
      ['input_features'],
      parts.flatMap(([, outputs]) => outputs),
    );
    expect(computed.sort()).toEqual(whole.filter((name) => !constants.has(name)).sort());
  },
  10 * minutes,
);
