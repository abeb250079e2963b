// Sound in: WAV files, resampling, and Whisper's spectrogram.
import { readFileSync } from 'node:fs';

/** A 16-bit PCM WAV file's first channel, from -1 to 1. */
export function readWav(path) {
  const bytes = readFileSync(path);
  if (bytes.toString('latin1', 0, 4) !== 'RIFF') throw new Error(`${path} is not a WAV file`);
  let channels, rate;
  for (let at = 12; at + 8 <= bytes.length;) {
    const id = bytes.toString('latin1', at, at + 4);
    const size = bytes.readUInt32LE(at + 4);
    const body = bytes.subarray(at + 8, at + 8 + size);
    if (id === 'fmt ') {
      channels = body.readUInt16LE(2);
      rate = body.readUInt32LE(4);
      if (body.readUInt16LE(14) !== 16) throw new Error(`${path}: not 16 bits a sample`);
    } else if (id === 'data') {
      const samples = Float32Array.from(
        { length: Math.floor(body.length / 2 / channels) },
        (_, i) => body.readInt16LE(2 * channels * i) / 32768,
      );
      return { samples, rate };
    }
    at += 8 + size + (size & 1);
  }
  throw new Error(`${path} has no sound in it`);
}

/** Changes the sampling rate with a Hann-windowed sinc, cut off below the lower of the two rates. */
export function resample(samples, from, to) {
  const ratio = to / from;
  const cutoff = 0.95 * Math.min(1, ratio);
  const reach = 16 / cutoff;
  return Float32Array.from({ length: Math.floor(samples.length * ratio) }, (_, i) => {
    const centre = i / ratio;
    let sum = 0;
    for (let k = Math.max(0, Math.ceil(centre - reach)); k <= Math.min(samples.length - 1, centre + reach); k++) {
      const x = (k - centre) * cutoff;
      const sinc = x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
      sum += samples[k] * sinc * cutoff * (0.5 + 0.5 * Math.cos((Math.PI * (k - centre)) / reach));
    }
    return sum;
  });
}

/** Speech at 16 kHz. */
export function speech(path) {
  const { samples, rate } = readWav(path);
  return resample(samples, rate, 16000);
}

// Slaney's mel scale: linear up to 1000 Hz, then logarithmic.
const melOf = (hertz) => (hertz < 1000 ? (3 * hertz) / 200 : 15 + (27 * Math.log(hertz / 1000)) / Math.log(6.4));
const hertzOf = (mel) => (mel < 15 ? (200 * mel) / 3 : 1000 * Math.exp((Math.log(6.4) * (mel - 15)) / 27));

/** Triangular filters of equal area: `count` rows of `bins` weights over 0 .. rate / 2. */
export function melFilters(count, bins, rate) {
  const top = melOf(rate / 2);
  const edges = Array.from({ length: count + 2 }, (_, i) => hertzOf((top * i) / (count + 1)));
  return Array.from({ length: count }, (_, m) => {
    const [low, middle, high] = edges.slice(m, m + 3);
    return Float64Array.from({ length: bins }, (_, bin) => {
      const hertz = (bin * rate) / 2 / (bins - 1);
      const height = Math.min((hertz - low) / (middle - low), (high - hertz) / (high - middle));
      return (Math.max(0, height) * 2) / (high - low);
    });
  });
}

/** Whisper's input: 80 mel bands x 3000 frames of the first 30 s at 16 kHz. */
export function whisperSpectrogram(samples) {
  const [size, hop, bands, frames] = [400, 160, 80, 3000];
  const bins = size / 2 + 1;
  const padded = new Float32Array(frames * hop);
  padded.set(samples.subarray(0, padded.length));
  const at = (i) => padded[i < 0 ? -i : i >= padded.length ? 2 * padded.length - 2 - i : i]; // reflected ends
  const window = Float64Array.from({ length: size }, (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / size));
  const cos = Float64Array.from({ length: size }, (_, i) => Math.cos((2 * Math.PI * i) / size));
  const sin = Float64Array.from({ length: size }, (_, i) => Math.sin((2 * Math.PI * i) / size));
  const filters = melFilters(bands, bins, 16000);
  const out = new Float32Array(bands * frames);
  const frame = new Float64Array(size);
  const power = new Float64Array(bins);
  let peak = -Infinity;
  for (let t = 0; t < frames; t++) {
    for (let i = 0; i < size; i++) frame[i] = at(t * hop + i - size / 2) * window[i];
    const silent = frame.every((value) => value === 0);
    for (let k = 0; k < bins && !silent; k++) {
      let re = 0;
      let im = 0;
      for (let i = 0, phase = 0; i < size; i++, phase = (phase + k) % size) {
        re += frame[i] * cos[phase];
        im -= frame[i] * sin[phase];
      }
      power[k] = re * re + im * im;
    }
    if (silent) power.fill(0);
    for (let m = 0; m < bands; m++) {
      let energy = 0;
      for (let k = 0; k < bins; k++) energy += filters[m][k] * power[k];
      const value = Math.log10(Math.max(energy, 1e-10));
      out[m * frames + t] = value;
      peak = Math.max(peak, value);
    }
  }
  return out.map((value) => (Math.max(value, peak - 8) + 4) / 4);
}
