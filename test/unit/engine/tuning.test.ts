import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { SessionOptions } from '../../../src/options/session-options.js';
import { ort } from '../../fixtures/engine.js';
import { model, node } from '../../fixtures/onnx-writer.js';

const { InferenceSession, Tensor } = ort;
const folder = mkdtempSync(join(tmpdir(), 'infernode-tuning-'));
afterAll(() => rmSync(folder, { recursive: true }));

const noise = (length: number) => Float32Array.from({ length }, (_, i) => ((i * 7919) % 257) / 128 - 1);
const bytes = model({
  nodes: [node('Conv', ['x', 'w'], ['y'], { attributes: { pads: [1, 1, 1, 1] } })],
  inputs: [{ name: 'x', type: 'float32', shape: [1, 16, 20, 20] }],
  outputs: [{ name: 'y', type: 'float32', shape: [1, 32, 20, 20] }],
  initializers: [{ name: 'w', type: 'float32', dims: [32, 16, 3, 3], data: noise(32 * 16 * 9) }],
});
const x = new Tensor('float32', noise(16 * 400), [1, 16, 20, 20]);

/** What a session with these options answers, and what its trace says of the convolution's method. */
async function run(options: SessionOptions): Promise<{ y: Float32Array; method?: string; tuning?: string }> {
  const session = await InferenceSession.create(bytes, {
    graphOptimizationLevel: 'extended',
    enableProfiling: true,
    profileFilePrefix: join(folder, 'trace'),
    ...options,
  });
  const { y } = await session.run({ x });
  const { path } = session.endProfiling() as { path: string };
  await session.release();
  const events = JSON.parse(readFileSync(path, 'utf8')) as { args: Record<string, string> }[];
  const { method, method_tuning: tuning } = events.find(({ args }) => args.op_name === 'Conv')!.args;
  return { y: y!.data as Float32Array, ...(method !== undefined && { method, tuning: tuning! }) };
}

describe('tuning', () => {
  it("chooses by measurement where it is 'measure', and says so in the trace", async () => {
    const plain = await run({});
    expect(plain.method).toBeUndefined();
    expect((await run({ tuning: 'off' })).method).toBeUndefined();
    const measured = await run({ tuning: 'measure' });
    expect(measured.method).toMatch(/^[a-z][a-z.@0-9]*$/);
    expect(measured.tuning).toBe('measured');
    const differences = measured.y.map((value, i) => Math.abs(value - plain.y[i]!));
    expect(Math.max(...differences)).toBeLessThan(1e-4);
  });

  it('keeps what was measured in the folder of the cache', async () => {
    const modelCacheDir = join(folder, 'cache');
    const first = await run({ tuning: 'measure', modelCacheDir });
    expect(first.tuning).toBe('measured');
    const files = () => readdirSync(modelCacheDir).filter((name) => name.endsWith('.methods'));
    expect(files()).toHaveLength(1);
    const second = await run({ tuning: 'measure', modelCacheDir });
    expect(second).toEqual({ ...first, tuning: 'measured earlier' });

    const file = join(modelCacheDir, files()[0]!);
    writeFileSync(file, readFileSync(file, 'utf8').replace(first.method!, 'other'));
    const options: SessionOptions = { tuning: 'measure', modelCacheDir, logSeverityLevel: 3 };
    expect((await run(options)).tuning).toBe('measured');
    expect((await run(options)).tuning).toBe('measured earlier');
    expect(files()).toHaveLength(1);
  });

  it('ends with the signal', async () => {
    await expect(
      InferenceSession.create(bytes, { tuning: 'measure', signal: AbortSignal.abort() }),
    ).rejects.toMatchObject({ code: 'ABORTED' });
  });
});
