// The front end of wake-word detectors: mel spectrogram of 16 kHz sound, then one embedding per 76 frames.

export async function speechEmbeddings(ort, { melspectrogram, embedding }, samples, options) {
  const { Tensor, InferenceSession } = ort;
  const mel = await InferenceSession.create(melspectrogram, options);
  const embed = await InferenceSession.create(embedding, options);
  const pcm = samples.map((value) => value * 32767); // the model expects 16-bit amplitudes
  const { output } = await mel.run({ input: new Tensor('float32', pcm, [1, pcm.length]) });
  const frames = output.data.map((value) => value / 10 + 2);
  const results = [];
  for (let at = 0; (at + 76) * 32 <= frames.length; at += 8) {
    const window = new Tensor('float32', frames.slice(at * 32, (at + 76) * 32), [1, 76, 32, 1]);
    results.push((await embed.run({ input_1: window })).conv2d_19.data);
  }
  await Promise.all([mel.release(), embed.release()]);
  return results;
}
