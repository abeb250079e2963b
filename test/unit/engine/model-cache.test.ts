import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { model, node } from '../../fixtures/onnx-writer.js';

const folder = mkdtempSync(join(tmpdir(), 'infernode-cache-'));
afterAll(() => rmSync(folder, { recursive: true }));

const weights = Float32Array.from({ length: 64 * 64 }, (_, i) => ((i * 7919) % 257) / 128 - 1);
const path = join(folder, 'model.onnx');
writeFileSync(
  path,
  model({
    nodes: [node('MatMul', ['x', 'w'], ['y'])],
    inputs: [{ name: 'x', type: 'float32', shape: ['n', 64] }],
    outputs: [{ name: 'y', type: 'float32', shape: ['n', 64] }],
    initializers: [{ name: 'w', type: 'float32', dims: [64, 64], data: weights }],
  }),
);

/** What a process of its own computes and logs. */
function start(modelCacheDir?: string): { y: string; log: string } {
  const options = { logSeverityLevel: 1, ...(modelCacheDir !== undefined && { modelCacheDir }) };
  const program = `
    const { InferenceSession, Tensor } = require(${JSON.stringify(fileURLToPath(new URL('../../..', import.meta.url)))});
    const session = InferenceSession.createSync(${JSON.stringify(path)}, ${JSON.stringify(options)});
    const x = new Tensor('float32', Float32Array.from({ length: 128 }, (_, i) => Math.sin(i)), [2, 64]);
    process.stdout.write(Buffer.from(session.runSync({ x }).y.data.buffer).toString('hex'));`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['-e', program], {
    encoding: 'utf8',
    timeout: 60_000,
  });
  expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' });
  return { y: stdout, log: stderr };
}

describe('modelCacheDir', () => {
  const cache = join(folder, 'made', 'when needed');
  const plain = start();

  it('serves the processes that come after', () => {
    expect(plain.y).toHaveLength(2 * 64 * 8);
    expect(plain.log).not.toContain('cache');
    const first = start(cache);
    expect(first.log).toContain('packed weights were written to');
    const second = start(cache);
    expect(second.log).toContain('1 packed weights come from');
    expect(second.log).not.toContain('written');
    expect([first.y, second.y]).toEqual([plain.y, plain.y]);
    expect(readdirSync(cache)).toEqual([expect.stringMatching(/^[0-9a-f]{32}\.infernode$/)]);
  });

  it('with a damaged file gives the same answers, a warning, and a whole file', () => {
    const file = join(cache, readdirSync(cache)[0]!);
    const bytes = readFileSync(file);
    bytes[bytes.length - 1]! ^= 1;
    writeFileSync(file, bytes);
    const damaged = start(cache);
    expect(damaged.log).toMatch(/warning.*not used: it is damaged/);
    expect(damaged.y).toBe(plain.y);
    expect(start(cache).log).toContain('1 packed weights come from');
  });

  it('that is no folder is warned of', () => {
    const { y, log } = start(path);
    expect(log).toMatch(/warning.*cannot be written to/);
    expect(y).toBe(plain.y);
  });
});
