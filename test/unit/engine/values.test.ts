import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import { projectRoot } from '../../../scripts/lib/engine.mjs';
import { ort, ours, tensor } from '../../fixtures/engine.js';
import { model, node, oneNode, type TensorInfo } from '../../fixtures/onnx-writer.js';

const start = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'infernode-values-'));
afterAll(() => rmSync(folder, { recursive: true }));
const [channels, side] = [32, 64];
const dims = [1, channels, side, side];
const info = (name: string): TensorInfo => ({ name, type: 'float32', shape: dims });

/** Two convolutions of `kernel` x `kernel` taps, the second over what the first made. */
function convolutions(kernel: number): Uint8Array {
  const data = Float32Array.from({ length: channels * channels * kernel ** 2 }, (_, i) => Math.sin(i) / 100);
  const pad = BigInt((kernel - 1) / 2);
  const attributes = { pads: [pad, pad, pad, pad] };
  return model({
    nodes: [node('Conv', ['x', 'w'], ['t'], { attributes }), node('Conv', ['t', 'w'], ['y'], { attributes })],
    inputs: [info('x')],
    outputs: [info('y')],
    initializers: [{ name: 'w', type: 'float32', dims: [channels, channels, kernel, kernel], data }],
  });
}

/** The least processor time of several runs over each kind of data, in microseconds, in a process of its own. */
async function timesOf(kernel: number, env: Record<string, string>): Promise<Record<string, number>> {
  const program = `
    const { InferenceSession, Tensor } = require(${JSON.stringify(projectRoot)});
    const session = InferenceSession.createSync(process.argv[1], { intraOpNumThreads: 1 });
    const values = (every) => {
      const data = Float32Array.from({ length: ${channels * side ** 2} }, (_, i) => every(i));
      return new Tensor('float32', data, ${JSON.stringify(dims)});
    };
    const inputs = {
      plain: values((i) => Math.cos(i)),
      NaN: values(() => NaN),
      infinite: values((i) => (i % 2 === 0 ? Infinity : -Infinity)),
      'partly NaN': values((i) => (i % 1000 === 0 ? NaN : Math.cos(i))),
    };
    const least = (x) => {
      const times = Array.from({ length: 12 }, () => {
        const before = process.cpuUsage();
        session.runSync({ x });
        const { user, system } = process.cpuUsage(before);
        return user + system;
      });
      return Math.min(...times);
    };
    least(inputs.plain);
    console.log(JSON.stringify(Object.fromEntries(Object.entries(inputs).map(([what, x]) => [what, least(x)]))));`;
  const path = join(folder, `${kernel}.onnx`);
  writeFileSync(path, convolutions(kernel));
  const { stdout } = await start(process.execPath, ['-e', program, path], { env: { ...process.env, ...env } });
  return JSON.parse(stdout);
}

// A matrix unit's loops leave such numbers to those of the vectors, which may take longer for any.
const hasUnit = existsSync('/proc/cpuinfo') && readFileSync('/proc/cpuinfo', 'utf8').includes('amx_tile');

it.runIf(ours).each([1, 3, 5])(
  'convolutions of %i taps over NaN or infinite data take no more than twice the time of vectors, or thrice that of a matrix unit',
  async (kernel) => {
    const times = await timesOf(kernel, {});
    const vectors = hasUnit ? await timesOf(kernel, { INFERNODE_CPU: 'avx512' }) : times;
    for (const [most, { plain, ...others }] of [
      [2, vectors],
      [hasUnit ? 3 : 2, times],
    ] as const)
      // prettier-ignore
      for (const [what, time] of Object.entries(others)) expect(time, what).toBeLessThan(most * plain! + 500);
  },
);

it.runIf(ours)('the least numbers keep their value as text, both ways', async () => {
  const numbers = { name: 'x', type: 'float64', shape: ['n'] } as const;
  const texts = { name: 'y', type: 'string', shape: ['n'] } as const;
  const written = ['5e-324', '1e-310', '2.5'];
  const toText = await ort.InferenceSession.create(oneNode('Cast', [numbers], [texts], { attributes: { to: 8n } }));
  const x = tensor('float64', Float64Array.from(written, Number), [3]);
  expect((await toText.run({ x })).y.data).toEqual(written);
  const toNumber = await ort.InferenceSession.create(oneNode('Cast', [texts], [numbers], { attributes: { to: 11n } }));
  const y = tensor('string', written, [3]);
  expect([...(await toNumber.run({ y })).x.data]).toEqual(written.map(Number));
});
