import { describe, expect, it } from 'vitest';
import { ort, tensor } from '../../fixtures/engine.js';
import { model, node, type TensorData, type TensorInfo } from '../../fixtures/onnx-writer.js';

// Models in float16 as converters write them: casts around what needs float32, and nodes between them that are fused.
const [width, inner] = [8, 16];
const f16 = (name: string, shape: TensorInfo['shape']): TensorInfo => ({ name, type: 'float16', shape });

/** The bits of a normal or zero number that float16 has exactly. */
function bits(value: number): number {
  if (value === 0) return 0;
  const exponent = Math.floor(Math.log2(Math.abs(value)));
  const mantissa = Math.round((Math.abs(value) / 2 ** exponent - 1) * 1024);
  return (value < 0 ? 0x8000 : 0) | ((exponent + 15) << 10) | mantissa;
}
function number(half: number): number {
  const exponent = (half >> 10) & 31;
  const size = exponent === 0 ? (half & 1023) * 2 ** -24 : (1 + (half & 1023) / 1024) * 2 ** (exponent - 15);
  return half & 0x8000 ? -size : size;
}
const values = (count: number, scale: number): Uint16Array =>
  Uint16Array.from({ length: count }, (_, i) => bits(Math.round(16 * Math.sin(i * 1.7)) * scale));
const weight = (name: string, dims: readonly number[], scale: number): TensorData => ({
  name,
  type: 'float16',
  dims,
  data: values(
    dims.reduce((a, b) => a * b, 1),
    scale,
  ),
});
const scalar = (name: string, value: number): TensorData => ({
  name,
  type: 'float32',
  dims: [],
  data: Float32Array.of(value),
});

/** A norm of the root mean square, and one with mean and bias: both in float32 between casts; a gated layer between. */
function block(): Uint8Array {
  const cast = (from: string, to: string, type: bigint) => node('Cast', [from], [to], { attributes: { to: type } });
  const mean = (from: string, to: string) => node('ReduceMean', [from], [to], { attributes: { axes: [-1n] } });
  return model({
    nodes: [
      cast('x', 'x32', 1n),
      node('Pow', ['x32', 'two'], ['squares']),
      mean('squares', 'meanSquare'),
      node('Add', ['meanSquare', 'epsilon'], ['shifted']),
      node('Sqrt', ['shifted'], ['root']),
      node('Div', ['x32', 'root'], ['scaled']),
      cast('scaled', 'scaled16', 10n),
      node('Mul', ['scale', 'scaled16'], ['normed']),
      node('MatMul', ['normed', 'up'], ['wide']),
      node('Sigmoid', ['wide'], ['gate']),
      node('Mul', ['wide', 'gate'], ['silu']),
      node('MatMul', ['silu', 'down'], ['narrow']),
      node('Add', ['narrow', 'x'], ['skipped']),
      cast('skipped', 'skipped32', 1n),
      mean('skipped32', 'mean'),
      node('Sub', ['skipped32', 'mean'], ['centred']),
      node('Pow', ['centred', 'two'], ['spread']),
      mean('spread', 'variance'),
      node('Add', ['variance', 'epsilon'], ['shifted2']),
      node('Sqrt', ['shifted2'], ['deviation']),
      node('Div', ['centred', 'deviation'], ['standard']),
      cast('standard', 'standard16', 10n),
      node('Mul', ['standard16', 'scale'], ['stretched']),
      node('Add', ['stretched', 'bias'], ['y']),
    ],
    inputs: [f16('x', ['batch', 'sequence', width])],
    outputs: [f16('y', ['batch', 'sequence', width])],
    initializers: [
      scalar('two', 2),
      scalar('epsilon', 1e-5),
      weight('scale', [width], 1 / 16),
      weight('bias', [width], 1 / 32),
      weight('up', [width, inner], 1 / 32),
      weight('down', [inner, width], 1 / 32),
    ],
  });
}

describe('a float16 model with casts to float32 in it', () => {
  it('loads at every level and answers as it stands', async () => {
    const answers: number[][] = [];
    for (const graphOptimizationLevel of ['disabled', 'basic', 'extended', 'all']) {
      const session = await ort.InferenceSession.create(block(), { graphOptimizationLevel });
      const { y } = await session.run({ x: tensor('float16', values(2 * 3 * width, 1 / 8), [2, 3, width]) });
      answers.push(Array.from(new Uint16Array(y.data.buffer, y.data.byteOffset, y.size), number));
      await session.release();
    }
    const [expected, ...others] = answers as [number[], ...number[][]];
    expect(Math.max(...expected.map(Math.abs))).toBeGreaterThan(0.5);
    for (const answer of others)
      answer.forEach((value, i) => expect(Math.abs(value - expected[i]!)).toBeLessThan(4e-3)); // some units of float16
  });
});
