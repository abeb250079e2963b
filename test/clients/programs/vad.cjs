// PACKAGE (CommonJS; feeds a run's outputs back as the next one's state) finds speech in the samples that SAMPLES names:
// in all at once, and, where it can, in one frame after another.
const { readFileSync } = require('node:fs');

const name = process.env.PACKAGE;
const { NonRealTimeVAD, RealTimeVAD } = require(name);
const bytes = readFileSync(process.env.SAMPLES); // 16 kHz, float32
const samples = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);

async function main() {
  let configured = false;
  const whole = await NonRealTimeVAD.new({
    modelFetcher: async () => readFileSync(require.resolve(`${name}/silero_vad_legacy.onnx`)).buffer,
    ortConfig: (ort) => (configured = ort.env.logLevel = 'error'),
  });
  const segmentsOf = async (sound) => {
    const segments = [];
    for await (const { start, end } of whole.run(sound, 16000)) segments.push([start, end]);
    return segments;
  };
  const silent = await segmentsOf(new Float32Array(16000));
  const segments = await segmentsOf(samples);
  await whole.destroy?.();

  const probabilities = [];
  const live = await RealTimeVAD?.new({
    sampleRate: 16000,
    onFrameProcessed: ({ isSpeech }) => probabilities.push(isSpeech),
  });
  live?.start();
  await live?.processAudio(samples);
  await live?.destroy();
  console.log(JSON.stringify({ configured, segments, silent, probabilities }));
}
main();
