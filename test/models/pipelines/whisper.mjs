// Speech to text with Whisper-tiny: spectrogram, encoder, greedy decoding with a key-value cache, byte-level tokens.
import { readFileSync } from 'node:fs';
import { whisperSpectrogram } from './audio.mjs';

const layers = 4;
const heads = 6;
const prompt = [50258, 50259, 50359, 50363]; // start, English, transcribe, no timestamps
const end = 50257;
const firstForbidden = [220, end]; // neither a lone space nor nothing

/** Text of byte-level tokens: each character of a token stands for one byte. */
function detokenizer(path) {
  const { model } = JSON.parse(readFileSync(path, 'utf8'));
  const words = new Map(Object.entries(model.vocab).map(([word, id]) => [id, word]));
  const shown = (byte) => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  const byteOf = new Map();
  for (let byte = 0, extra = 256; byte < 256; byte++)
    byteOf.set(String.fromCharCode(shown(byte) ? byte : extra++), byte);
  return (ids) => {
    const bytes = ids.flatMap((id) => [...(words.get(id) ?? '')].map((character) => byteOf.get(character)));
    return Buffer.from(bytes).toString('utf8').trim();
  };
}

export async function loadWhisper(ort, { encoder, decoder, tokenizer }, options) {
  const encode = await ort.InferenceSession.create(encoder, options);
  const decode = await ort.InferenceSession.create(decoder, options);
  const toText = detokenizer(tokenizer);
  const { Tensor } = ort;

  const emptyPast = () => {
    const past = {};
    for (let i = 0; i < layers; i++) {
      for (const name of ['decoder.key', 'decoder.value', 'encoder.key', 'encoder.value']) {
        past[`past_key_values.${i}.${name}`] = new Tensor('float32', new Float32Array(0), [1, heads, 0, 64]);
      }
    }
    return past;
  };

  /** Text of speech at 16 kHz. */
  async function transcribe(samples, limit = 32) {
    const features = new Tensor('float32', whisperSpectrogram(samples), [1, 80, 3000]);
    const { last_hidden_state } = await encode.run({ input_features: features }, ['last_hidden_state']);
    let past = emptyPast();
    const ids = [];
    for (let step = 0; step < limit; step++) {
      const input = step === 0 ? prompt : ids.slice(-1);
      const present = decode.outputNames.filter((name) => name.startsWith('present.'));
      const outputs = await decode.run(
        {
          input_ids: new Tensor('int64', BigInt64Array.from(input, BigInt), [1, input.length]),
          encoder_hidden_states: last_hidden_state,
          use_cache_branch: new Tensor('bool', Uint8Array.of(step > 0 ? 1 : 0), [1]),
          ...past,
        },
        ['logits', ...present],
      );
      const { data, dims } = outputs.logits;
      const last = data.subarray((dims[1] - 1) * dims[2]);
      let best = -1;
      for (let id = 0; id < last.length; id++) {
        if (id >= 50258 || (step === 0 && firstForbidden.includes(id))) continue; // only text or the end
        if (best < 0 || last[id] > last[best]) best = id;
      }
      if (best === end) break;
      ids.push(best);
      const next = {};
      for (const name of present) {
        const key = name.replace('present', 'past_key_values');
        // The encoder's keys and values are made by the first call and stay.
        next[key] = step > 0 && name.includes('.encoder.') ? past[key] : outputs[name];
      }
      past = next;
    }
    return { text: toText(ids), ids };
  }

  return { transcribe, release: () => Promise.all([encode.release(), decode.release()]) };
}
