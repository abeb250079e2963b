// kokoro-js says a sentence: its own text processing and voices, with the model as a session of onnxruntime-node.
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { KokoroTTS } from 'kokoro-js';

const { InferenceSession, Tensor } = createRequire(`${process.cwd()}/`)('onnxruntime-node');
const { MODEL, SENTENCE, SAMPLES } = process.env;

// The model's symbols and their numbers.
const runs = [
  [1, ';:,.!?'], [9, '—…"()“” \u0303ʣʥʦʨᵝ\uAB67'], [24, 'AI'], [31, 'O'], [33, 'Q'], [35, 'ST'], [39, 'W'], [41, 'Yᵊabcdef'], [50, 'hijklmnopqrstuvwxyzɑɐɒæ'], [75, 'βɔɕç'], [80, 'ɖðʤə'], [85, 'ɚɛɜ'], [90, 'ɟ'], [92, 'ɡ'], [99, 'ɥ'], [101, 'ɨɪʝ'], [110, 'ɯɰŋɳɲɴø'], [118, 'ɸθœ'], [123, 'ɹ'], [125, 'ɾɻ'], [128, 'ʁɽʂʃʈʧ'], [135, 'ʊʋ'], [138, 'ʌɣɤ'], [142, 'χʎ'], [147, 'ʒʔ'], [156, 'ˈˌː'], [162, 'ʰ'], [164, 'ʲ'], [169, '↓'], [171, '→↗↘'], [177, 'ᵻ'],
]; // prettier-ignore
const numbers = new Map(runs.flatMap(([first, symbols]) => [...symbols].map((symbol, i) => [symbol, first + i])));
const int64 = (ids) => new Tensor('int64', BigInt64Array.from(ids, BigInt), [1, ids.length]);
const tokenizer = (phonemes) => {
  const ids = [...phonemes].flatMap((symbol) => numbers.get(symbol) ?? []);
  return { input_ids: int64([0, ...ids, 0]) };
};

const session = await InferenceSession.create(MODEL);
const own = ({ type, data, dims }) => new Tensor(type, data, dims);
const [ids] = session.inputNames;
const [waveform] = session.outputNames;
const model = async ({ input_ids, style, speed }) => {
  const outputs = await session.run({ [ids]: input_ids, style: own(style), speed: own(speed) });
  return { waveform: outputs[waveform] };
};
const { audio, sampling_rate } = await new KokoroTTS(model, tokenizer).generate(SENTENCE, { voice: 'af_heart' });
writeFileSync(SAMPLES, audio);
const power = audio.reduce((sum, x) => sum + x * x, 0) / audio.length;
const finite = audio.every(Number.isFinite);
console.log(JSON.stringify({ rate: sampling_rate, finite, loudness: Math.sqrt(power) }));
