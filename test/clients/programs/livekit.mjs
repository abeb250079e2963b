// LiveKit's plugin, which keeps its state in arrays that it overwrites, finds speech in the samples that SAMPLES names.
import { readFileSync } from 'node:fs';
import { initializeLogger, VADEventType } from '@livekit/agents';
import { VAD } from '@livekit/agents-plugin-silero';
import { AudioFrame } from '@livekit/rtc-node';

initializeLogger({ pretty: false, level: 'error' });
const bytes = readFileSync(process.env.SAMPLES); // 16 kHz, float32
const samples = Int16Array.from(new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4), (x) => x * 32767);

const stream = (await VAD.load()).stream();
let pushed = 0;
for (; pushed + 160 <= samples.length; pushed += 160) {
  stream.pushFrame(new AudioFrame(samples.slice(pushed, pushed + 160), 16000, 1, 160));
}
const [segments, probabilities] = [[], []];
for await (const { type, timestamp, probability } of stream) {
  if (type === VADEventType.INFERENCE_DONE) probabilities.push(probability);
  else if (type === VADEventType.START_OF_SPEECH) segments.push([timestamp]);
  else if (type === VADEventType.END_OF_SPEECH) segments.at(-1).push(timestamp);
  if ((probabilities.length + 1) * 512 > pushed) break; // nothing says that the stream has ended
}
console.log(JSON.stringify({ segments, probabilities }));
process.exit();
