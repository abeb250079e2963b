// Which notes sound in a recording of two seconds.

export const rate = 22050;
export const window = 43844;

/** A chord of plain tones with two overtones, as midi note numbers, fading in and out. */
export function chord(notes) {
  return Float32Array.from({ length: window }, (_, i) => {
    const t = i / rate;
    const envelope = Math.min(1, t * 20) * Math.exp(-t);
    const tone = (note) => {
      const phase = 2 * Math.PI * 440 * 2 ** ((note - 69) / 12) * t;
      return Math.sin(phase) + 0.4 * Math.sin(2 * phase) + 0.2 * Math.sin(3 * phase);
    };
    return (envelope * notes.reduce((sum, note) => sum + tone(note), 0) * 0.3) / notes.length;
  });
}

/** Midi notes that sound for a quarter of the window or more, from the frame map (172 frames x 88 keys). */
export async function notesIn(ort, model, samples, options) {
  const session = await ort.InferenceSession.create(model, options);
  const input = new ort.Tensor('float32', samples, [1, window, 1]);
  const outputs = await session.run({ [session.inputNames[0]]: input });
  await session.release();
  const frames = outputs['StatefulPartitionedCall:1'];
  const [, steps, keys] = frames.dims;
  return Array.from({ length: keys }, (_, key) => {
    let sounding = 0;
    for (let t = 0; t < steps; t++) if (frames.data[t * keys + key] > 0.3) sounding++;
    return sounding > steps / 4 ? key + 21 : 0;
  }).filter(Boolean);
}
