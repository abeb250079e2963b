import { spawnSync } from 'node:child_process';
import { closeSync, ftruncateSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { projectRoot } from '../../../scripts/lib/engine.mjs';
import { ours } from '../../fixtures/engine.js';
import { add, matmul } from '../../fixtures/models.js';
import { model, node, type TensorInfo } from '../../fixtures/onnx-writer.js';
import { heavy } from './models.js';

// What a process takes for what it is asked: memory at its peak and over time, and the processor while nothing runs.
const folder = mkdtempSync(join(tmpdir(), 'infernode-footprint-'));
afterAll(() => rmSync(folder, { recursive: true }));
const f32 = (name: string, shape: TensorInfo['shape']): TensorInfo => ({ name, type: 'float32', shape });

/** What a program in a process of its own says, as JSON. `status(key)` is an entry of /proc/self/status in MB. */
function said(program: string, env: NodeJS.ProcessEnv = {}): any {
  const head = `
    const { readFileSync } = require('node:fs');
    const { InferenceSession, Tensor } = require(${JSON.stringify(projectRoot)});
    const status = (key) => Number(new RegExp(key + ':\\\\s+(\\\\d+)').exec(readFileSync('/proc/self/status', 'utf8'))[1]) / 1024;
    const say = (value) => console.log(JSON.stringify(value));
    const bytes = (name) => Buffer.from(process.env[name], 'base64');
    (async () => { ${program} })();`;
  const models = { ADD: Buffer.from(add()).toString('base64'), MATMUL: Buffer.from(matmul()).toString('base64') };
  const all = { ...process.env, ...models, ...env };
  const { stdout, stderr } = spawnSync(process.execPath, ['--expose-gc', '-e', head], { env: all, encoding: 'utf8' });
  expect(stderr).toBe('');
  return JSON.parse(stdout);
}

/** A chain of 16 products with weights of 8 MB each, in the model's file or in one of their own. */
function layers(external: boolean): string {
  const [count, width] = [16, 1448];
  const size = width * width * 4;
  const numbers = Array.from({ length: count }, (_, i) => i);
  const data = (i: number) => new Float32Array(width * width).fill(i + 1); // those of the same bytes would be shared
  const place = (i: number) => ({ location: 'weights.bin', offset: i * size, length: size });
  const path = join(folder, 'layers.onnx');
  if (external) writeFileSync(join(folder, 'weights.bin'), Buffer.concat(numbers.map((i) => Buffer.from(data(i).buffer)))); // prettier-ignore
  const bytes = model({
    nodes: numbers.map((i) => node('MatMul', [`v${i}`, `w${i}`], [`v${i + 1}`])),
    inputs: [f32('v0', ['n', width])],
    outputs: [f32(`v${count}`, ['n', width])],
    initializers: numbers.map((i) => {
      const info = { name: `w${i}`, type: 'float32', dims: [width, width] } as const;
      return external ? { ...info, data: [], external: place(i) } : { ...info, data: data(i) };
    }),
  });
  writeFileSync(path, bytes);
  return path;
}

/** A model that computes a square of `size` from one number and sums it up: large within, small at both ends. */
function wide(size: number): NodeJS.ProcessEnv {
  const bytes = model({
    nodes: [node('Expand', ['x', 'shape'], ['e']), node('MatMul', ['e', 'e'], ['p']), node('ReduceSum', ['p'], ['y'])], // prettier-ignore
    inputs: [f32('x', [1])],
    outputs: [f32('y', [1, 1])],
    initializers: [{ name: 'shape', type: 'int64', dims: [2], data: BigInt64Array.of(BigInt(size), BigInt(size)) }],
  });
  return { WIDE: Buffer.from(bytes).toString('base64') };
}

describe.runIf(ours && process.platform === 'linux')('a process', () => {
  // What a model's own file holds begins anywhere, and what is not aligned is copied before it is packed.
  it.each([
    ['a file of their own', 1.5, true],
    ["the model's file", 2.3, false],
  ])('that loads weights from %s holds at most %s times as much at its peak', (_, times, external) => {
    const path = layers(external);
    const { before, after } = said(`
      await (await InferenceSession.create(bytes('ADD'))).release();
      const before = status('VmHWM');
      await InferenceSession.create(${JSON.stringify(path)});
      say({ before, after: status('VmHWM') });`);
    expect(after - before).toBeLessThan(times * 128);
    rmSync(path);
  });

  it('that loads a model from a stream holds at most 2.3 times as much at its peak', () => {
    const path = layers(false);
    const { before, after } = said(`
      await (await InferenceSession.create(bytes('ADD'))).release();
      const { openSync, readSync } = require('node:fs');
      const file = openSync(${JSON.stringify(path)});
      const chunk = Buffer.alloc(1 << 16);
      const before = status('VmHWM');
      await InferenceSession.create((async function* () {
        for (let length; (length = readSync(file, chunk)) > 0; ) yield chunk.subarray(0, length);
      })());
      say({ before, after: status('VmHWM') });`);
    expect(after - before).toBeLessThan(2.3 * 128);
    rmSync(path);
  });

  it('that reads a few rows of a file of 3 GB holds little of it', () => {
    const [rows, width] = [3 * 2 ** 20, 256];
    const file = openSync(join(folder, 'table.bin'), 'w');
    ftruncateSync(file, rows * width * 4); // a hole, but for one element
    writeSync(file, Float32Array.of(7), 0, 4, (rows - 1) * width * 4);
    closeSync(file);
    const path = join(folder, 'table.onnx');
    const external = { location: 'table.bin', offset: 0, length: rows * width * 4 };
    const table = { name: 'table', type: 'float32', dims: [rows, width], data: [], external } as const;
    const nodes = [node('Gather', ['table', 'row'], ['y'])];
    const row: TensorInfo = { name: 'row', type: 'int64', shape: ['n'] };
    writeFileSync(path, model({ nodes, inputs: [row], outputs: [f32('y', ['n', width])], initializers: [table] }));
    const { first, last, megabytes } = said(`
      const session = await InferenceSession.create(${JSON.stringify(path)});
      const { y } = await session.run({ row: new Tensor('int64', [0, ${rows - 1}], [2]) });
      say({ first: y.data[0], last: y.data[${width}], megabytes: status('VmHWM') });`);
    expect({ first, last }).toEqual({ first: 0, last: 7 });
    expect(megabytes).toBeLessThan(200);
    rmSync(join(folder, 'table.bin'));
  });

  it('takes large blocks from the system itself, not from malloc, which Electron bounds', () => {
    const path = join(folder, 'heavy.onnx');
    writeFileSync(path, heavy(32 * 2 ** 20)); // 128 MB
    // With this glibc's malloc has its large blocks in [heap], too.
    const { heap, held } = said(
      `
      const session = await InferenceSession.create(${JSON.stringify(path)});
      await session.run({ x: new Tensor('float32', [1], [1]) });
      const [from, to] = /^(\\w+)-(\\w+) .*\\[heap\\]$/m.exec(readFileSync('/proc/self/maps', 'utf8')).slice(1);
      say({ heap: (parseInt(to, 16) - parseInt(from, 16)) / 2 ** 20, held: session.memoryBytes / 2 ** 20 });`,
      { GLIBC_TUNABLES: 'glibc.malloc.mmap_max=0' },
    );
    expect(held).toBeGreaterThan(120);
    expect(heap).toBeLessThan(60);
    rmSync(path);
  });

  it('of 12,000 runs, some of them failed, is as large as it was after 2,000', () => {
    const { growth } = said(`
      const session = await InferenceSession.create(bytes('MATMUL'), { logSeverityLevel: 3 });
      const of = (size) => new Tensor('float32', new Float32Array(size * size).fill(1), [size, size]);
      const runs = async (count) => {
        for (let i = 0; i < count; i++) {
          const size = 1 + (i % 60);
          if (i % 100 === 0) await session.run({ a: of(size), b: of(size + 1) }).catch(() => 0);
          else await session.run({ a: of(size), b: of(size) });
        }
        for (let i = 0; i < 3; i++) { gc(); await new Promise(setImmediate); }
        return status('VmRSS');
      };
      const before = await runs(2000);
      say({ growth: (await runs(10000)) - before });`);
    expect(growth).toBeLessThan(12);
  });

  it('of 2,000 aborted runs and 300 sessions is as large as it was after a few, but for what V8 keeps', () => {
    const { aborted, growth } = said(
      `
      const quiet = { logSeverityLevel: 4 };
      const held = async () => {
        for (let i = 0; i < 3; i++) { gc(); await new Promise(setImmediate); }
        return status('VmRSS') - process.memoryUsage().heapTotal / 2 ** 20;
      };
      const feeds = { x: new Tensor('float32', [1], [1]) };
      const session = await InferenceSession.create(bytes('WIDE'), quiet);
      let aborted = 0;
      const runs = async (count) => {
        for (let i = 0; i < count; i++) {
          const controller = new AbortController();
          const run = session.run(feeds, { signal: controller.signal }).catch(({ code }) => (aborted += code === 'ABORTED'));
          await new Promise(setImmediate);
          controller.abort();
          await run;
        }
        return held();
      };
      const sessions = async (count) => {
        for (let i = 0; i < count; i++) {
          const own = await InferenceSession.create(bytes('WIDE'), quiet);
          await own.run(feeds);
          await own.release();
        }
        return held();
      };
      const few = [await runs(200), await sessions(50)];
      const many = [await runs(2000), await sessions(300)];
      say({ aborted, growth: many[1] - few[1] });`,
      wide(400),
    );
    expect(aborted).toBeGreaterThan(100);
    expect(growth).toBeLessThan(12); // a run's memory is 1.3 MB
  });

  it('with 200 runs in flight holds the memory of those that execute, and its loop turns meanwhile', () => {
    const { growth, turns } = said(
      `
      require(${JSON.stringify(projectRoot)}).env.maxConcurrentRuns = Number(process.env.MOST ?? 4);
      const session = await InferenceSession.create(bytes('WIDE'));
      const feeds = { x: new Tensor('float32', [1], [1]) };
      for (let i = 0; i < 3; i++) await session.run(feeds);
      const before = status('VmRSS');
      let [turn, over] = [0, false];
      const next = () => { turn++; if (!over) setImmediate(next); };
      next();
      const turns = new Set();
      await Promise.all(Array.from({ length: 200 }, () => session.run(feeds).then(() => turns.add(turn))));
      over = true;
      say({ growth: status('VmHWM') - before, turns: turns.size });`,
      wide(700),
    );
    expect(growth).toBeLessThan(60); // 4 at a time of 4 MB and what they pack; all at once come to hundreds
    expect(turns).toBeGreaterThan(10); // they end in turns of the loop between which JavaScript has its own
  });

  it('uses no processor while nothing runs', () => {
    const { used } = said(`
      const session = await InferenceSession.create(bytes('MATMUL'));
      const square = () => new Tensor('float32', new Float32Array(512 * 512).fill(1), [512, 512]);
      for (let i = 0; i < 5; i++) await session.run({ a: square(), b: square() });
      gc();
      const before = process.cpuUsage();
      await new Promise((resolve) => setTimeout(resolve, 400));
      const { user, system } = process.cpuUsage(before);
      say({ used: (user + system) / 1000 });`);
    expect(used).toBeLessThan(40); // milliseconds; one thread that spins uses 400
  });
});
