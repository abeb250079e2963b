// A voice of Piper says SENTENCE: phonemes by espeak, one after another with a pad between them, and the model's samples.
// Its noise is off, which VITS draws at random, so that the samples are the same each time.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { phonemize } from 'phonemizer';

const { InferenceSession, Tensor } = createRequire(`${process.cwd()}/`)('onnxruntime-node');
const { MODEL, CONFIG, SENTENCE, SAMPLES } = process.env;

const { inference, phoneme_id_map: map, espeak, audio } = JSON.parse(readFileSync(CONFIG, 'utf8'));
const phonemes = (await phonemize(SENTENCE, espeak.voice)).join(' ').normalize('NFD');
const ids = ['^', ...`${phonemes}.`].flatMap((symbol) => (map[symbol] ? [...map[symbol], ...map['_']] : []));
ids.push(...map['$']);

const session = await InferenceSession.create(MODEL);
const scales = [0, inference.length_scale, 0]; // of noise, of length, of noise in the length
const { output } = await session.run({
  input: new Tensor('int64', ids, [1, ids.length]),
  input_lengths: new Tensor('int64', [ids.length], [1]),
  scales: new Tensor('float32', scales, [3]),
});
if (SAMPLES) writeFileSync(SAMPLES, output.data);
const every = Math.floor(output.size / 200);
const some = [...output.data].filter((_, i) => i % every === 0);
console.log(JSON.stringify({ rate: audio.sample_rate, dims: output.dims, some }));
