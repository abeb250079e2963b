// Probability of speech, window by window, with Silero's detectors of versions 4 and 5.

const rate = (Tensor) => new Tensor('int64', BigInt64Array.of(16000n), [1]); // the models declare a scalar

/** Version 4: windows of 1536 samples, two LSTM states. */
export async function speechV4(ort, path, samples, options) {
  const { Tensor, InferenceSession } = ort;
  const session = await InferenceSession.create(path, options);
  let h = new Tensor('float32', new Float32Array(128), [2, 1, 64]);
  let c = new Tensor('float32', new Float32Array(128), [2, 1, 64]);
  const probabilities = [];
  for (let at = 0; at + 1536 <= samples.length; at += 1536) {
    const input = new Tensor('float32', samples.slice(at, at + 1536), [1, 1536]);
    const outputs = await session.run({ input, sr: rate(Tensor), h, c });
    [h, c] = [outputs.hn, outputs.cn];
    probabilities.push(outputs.output.data[0]);
  }
  await session.release();
  return probabilities;
}

/** Version 5: 512 new samples after the last 64 of the window before, one state. */
export async function speechV5(ort, path, samples, options) {
  const { Tensor, InferenceSession } = ort;
  const session = await InferenceSession.create(path, options);
  let state = new Tensor('float32', new Float32Array(256), [2, 1, 128]);
  const probabilities = [];
  for (let at = 0; at + 512 <= samples.length; at += 512) {
    const window = new Float32Array(576);
    window.set(samples.subarray(Math.max(0, at - 64), at + 512), at === 0 ? 64 : 0);
    const outputs = await session.run({ input: new Tensor('float32', window, [1, 576]), state, sr: rate(Tensor) });
    state = outputs.stateN;
    probabilities.push(outputs.output.data[0]);
  }
  await session.release();
  return probabilities;
}
