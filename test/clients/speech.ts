import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fetchModel } from '../../scripts/lib/models.mjs';
import { readWav, resample } from '../models/pipelines/audio.mjs';

/** A file in `folder` of samples, 16 kHz in float32: so many seconds of silence, and again after each recording. */
export async function spoken(folder: string, names: readonly string[], before = 0, after = 0.5): Promise<string> {
  const parts = [new Float32Array(before * 16000)];
  for (const name of names) {
    const { samples, rate } = readWav(await fetchModel(name));
    parts.push(resample(samples, rate, 16000), new Float32Array(after * 16000));
  }
  const path = join(folder, `${names.join('-')}.f32`);
  writeFileSync(path, Buffer.concat(parts.map((part) => Buffer.from(part.buffer, part.byteOffset, part.byteLength))));
  return path;
}
