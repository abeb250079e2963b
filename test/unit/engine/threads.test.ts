import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { projectRoot } from '../../../scripts/lib/engine.mjs';
import { floats, ort } from '../../fixtures/engine.js';
import { matmul } from '../../fixtures/models.js';
import { model, node } from '../../fixtures/onnx-writer.js';

const folder = mkdtempSync(join(tmpdir(), 'infernode-'));
afterAll(() => rmSync(folder, { recursive: true }));
const square = () => floats(new Array(512 * 512).fill(1), [512, 512]);

/** How many threads runs on the calling thread have made, in a process of its own. */
function helpersOf(command: readonly string[]): number {
  const program = `
    const { readdirSync, readFileSync } = require('fs');
    const ort = require(process.argv[1]);
    const bytes = Buffer.from(process.argv[2], 'base64');
    const own = () => readdirSync('/proc/self/task')
      .filter((id) => readFileSync('/proc/self/task/' + id + '/comm', 'utf8').trim() === 'infernode').length;
    const square = () => new ort.Tensor('float32', new Float32Array(512 * 512), [512, 512]);
    const session = ort.InferenceSession.createSync(bytes);
    for (let i = 0; i < 3; i++) session.runSync({ a: square(), b: square() });
    console.log(own());`;
  const [file, ...args] = [...command, process.execPath, '-e', program, projectRoot];
  const { stdout, stderr } = spawnSync(file!, [...args, Buffer.from(matmul()).toString('base64')], {
    encoding: 'utf8',
  });
  expect(stderr).toBe('');
  return Number(stdout);
}

describe.runIf(process.platform === 'linux')('the process', () => {
  it('has a thread for each processor that it may use, the calling one among them, and one that prepared loads', () => {
    expect(helpersOf([])).toBeLessThanOrEqual(availableParallelism());
  });

  it('has no helpers where it may use one processor', (context) => {
    if (spawnSync('taskset', ['-c', '0', 'true']).status !== 0)
      return context.skip('not run: taskset cannot be had here');
    expect(helpersOf(['taskset', '-c', '0'])).toBe(0);
  });
});

/** The events of nodes in the trace of one run. */
async function nodesOf(bytes: Uint8Array, feeds: object, options: object): Promise<any[]> {
  const prefix = join(folder, 'trace');
  const session = await ort.InferenceSession.create(bytes, {
    ...options,
    enableProfiling: true,
    profileFilePrefix: prefix,
  });
  await session.run(feeds);
  const { events } = session.endProfiling();
  await session.release();
  const executor = (options as { executionMode?: string }).executionMode === 'parallel' ? 'Parallel' : 'Sequential';
  expect(events.map(({ name }: any) => name)).toContain(`${executor}Executor::Execute`);
  return events.filter(({ cat }: any) => cat === 'Node');
}

describe('a session', () => {
  it('of one intra-op thread shares no loop', async () => {
    const nodes = await nodesOf(matmul(), { a: square(), b: square() }, { intraOpNumThreads: 1 });
    expect(nodes.length).toBeGreaterThan(0);
    for (const { args } of nodes) expect(args.thread_scheduling_stats.sub_threads).toEqual({});
  });

  it('of one inter-op thread runs its nodes one after another, of two on two threads at most', async () => {
    const shape = ['n', 'n'];
    const branches = ['Exp', 'Neg', 'Abs', 'Sin'];
    const wide = model({
      nodes: branches.map((op) => node(op, ['x'], [op])),
      inputs: [{ name: 'x', type: 'float32', shape }],
      outputs: branches.map((name) => ({ name, type: 'float32' as const, shape })),
    });
    for (const interOpNumThreads of [1, 2]) {
      const options = { executionMode: 'parallel', interOpNumThreads, graphOptimizationLevel: 'disabled' };
      const nodes = await nodesOf(wide, { x: square() }, options);
      expect(nodes).toHaveLength(4);
      expect(new Set(nodes.map(({ tid }) => tid)).size).toBeLessThanOrEqual(interOpNumThreads);
    }
  });

  it('says of each node’s loops what was measured, and no more', async () => {
    const [{ args }] = (await nodesOf(matmul(), { a: square(), b: square() }, {})) as [any];
    const { main_thread: main, sub_threads: helpers } = args.thread_scheduling_stats;
    const keys = ['thread_pool_name', 'thread_id', 'block_size', 'core', 'Distribution', 'Run', 'Wait'];
    expect(Object.keys(main)).toEqual(keys);
    expect(main.Run + main.Wait + Object.keys(helpers).length).toBeGreaterThan(0);
    expect(Object.keys(args).filter((key) => key.startsWith('mem_'))).toEqual([]);
  });
});
