#!/usr/bin/env node
// Regenerates the weights of a weight-stripped model: NAME.onnx + NAME.json -> OUT/NAME.onnx + OUT/NAME.bin.
//
// usage: node materialize.mjs OUT_DIR [NAME ...]        (no name: every model beside this script)
//
// Each tensor above 1 KiB in NAME.onnx is external data in NAME.bin. NAME.json keeps its dtype, shape, byte
// offset and the mean, standard deviation, minimum and maximum that the exporter saw. Values are drawn from a
// bell curve (the sum of four uniforms) with integer-only pseudo-random numbers, so every machine writes the same bytes.
import {
  readFileSync,
  openSync,
  writeSync,
  closeSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  existsSync,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));

/** FNV-1a over the tensor's name: the seed, so one tensor's bytes do not depend on another's. */
function seedOf(text) {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193) >>> 0;
  return h || 1;
}

/** Float32 values with the given statistics; xorshift32 underneath. */
function values(tensor, count) {
  const out = new Float32Array(count);
  const { mean, std, min, max } = tensor;
  if (std === 0) return out.fill(mean);
  let s = seedOf(tensor.name);
  const draw = () => {
    s ^= s << 13;
    s ^= s >>> 17;
    s ^= s << 5;
    return s >>> 8;
  };
  const scale = (std * Math.sqrt(3)) / 16777216;
  for (let i = 0; i < count; i++) {
    const v = mean + (draw() + draw() + draw() + draw() - 33554430) * scale;
    out[i] = v < min ? min : v > max ? max : v;
  }
  return out;
}

/** IEEE half bits of a float32, rounded to nearest even. */
export function toHalf(f32) {
  const bits = new Uint32Array(f32.buffer, f32.byteOffset, f32.length),
    out = new Uint16Array(f32.length);
  for (let i = 0; i < bits.length; i++) {
    const x = bits[i],
      sign = (x >>> 16) & 0x8000,
      e = ((x >>> 23) & 255) - 112;
    let m = x & 0x7fffff;
    if (e <= 0) {
      if (e < -10) {
        out[i] = sign;
        continue;
      }
      m |= 0x800000;
      const shift = 14 - e,
        half = 1 << (shift - 1);
      out[i] = sign | ((m + half - 1 + ((m >>> shift) & 1)) >>> shift);
    } else
      out[i] =
        sign |
        (((e << 10) | (m >>> 13)) + ((m & 0x1fff) > 0x1000 || ((m & 0x1fff) === 0x1000 && (m >>> 13) & 1) ? 1 : 0));
  }
  return out;
}

export function materialize(name, outDir, from = here) {
  const spec = JSON.parse(readFileSync(join(from, `${name}.json`), 'utf8'));
  const model = join(outDir, `${name}.onnx`),
    weights = join(outDir, `${name}.bin`);
  mkdirSync(outDir, { recursive: true });
  if (existsSync(weights) && existsSync(model) && statSync(weights).size >= spec.total - 4095) return model;
  const fd = openSync(weights, 'w');
  for (const t of spec.tensors) {
    const count = t.shape.reduce((a, b) => a * b, 1);
    const f32 = values(t, count);
    const data = t.dtype === 'float16' ? toHalf(f32) : t.dtype === 'float64' ? Float64Array.from(f32) : f32;
    writeSync(fd, new Uint8Array(data.buffer, data.byteOffset, data.byteLength), 0, data.byteLength, t.offset);
  }
  closeSync(fd);
  copyFileSync(join(from, `${name}.onnx`), model);
  return model;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [outDir, ...names] = process.argv.slice(2);
  if (!outDir) {
    console.error('usage: node materialize.mjs OUT_DIR [NAME ...]');
    process.exit(2);
  }
  const all = readdirSync(here)
    .filter((f) => f.endsWith('.onnx'))
    .map((f) => f.slice(0, -5));
  for (const name of names.length ? names : all) console.log(materialize(name, outDir));
}
