// infernode check, perf and profile as a user starts them; test/types/command.test.ts has infernode types.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { projectRoot } from '../../scripts/lib/engine.mjs';
import { statistics } from '../../src/cli/perf.js';
import { model, node, oneNode, type TensorInfo } from '../fixtures/onnx-writer.js';

const folder = mkdtempSync(join(tmpdir(), 'infernode-command-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const info = (name: string, type: TensorInfo['type'], shape: TensorInfo['shape']): TensorInfo => ({
  name,
  type,
  shape,
});

/** Inputs of many types, with free dims, one of which two of them share. */
const bytes = model({
  nodes: [
    node('Gather', ['table', 'ids'], ['rows']),
    node('Mul', ['rows', 'pixels'], ['y']),
    node('Cast', ['mask'], ['z'], { attributes: { to: 1n } }),
    node('Identity', ['half'], ['h']),
    node('Identity', ['brain'], ['b']),
    node('Identity', ['text'], ['t']),
  ],
  inputs: [
    info('ids', 'int64', ['batch']),
    info('pixels', 'float32', ['batch', 4]),
    info('mask', 'bool', ['batch', '']),
    info('half', 'float16', ['length']),
    info('brain', 'bfloat16', [2]),
    info('text', 'string', []),
  ],
  outputs: [
    info('y', 'float32', ['batch', 4]),
    info('z', 'float32', ['batch', '']),
    info('h', 'float16', ['length']),
    info('b', 'bfloat16', [2]),
    info('t', 'string', []),
  ],
  initializers: [{ name: 'table', type: 'float32', dims: [2, 4], data: new Float32Array(8).fill(2) }],
});
writeFileSync(join(folder, 'model.onnx'), bytes);

function infernode(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const command = join(projectRoot, 'dist', 'infernode.cjs');
  return spawnSync(process.execPath, [command, ...args], { cwd: folder, encoding: 'utf8' });
}
function found(...args: string[]): any {
  const { status, stdout, stderr } = infernode(...args, '--json');
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return JSON.parse(stdout);
}

describe('infernode check', () => {
  it('says what the model is', () => {
    const { inputs, freeDims, operators, bytes: size } = found('check', 'model.onnx');
    expect(inputs.map(({ name }: TensorInfo) => name)).toEqual(['ids', 'pixels', 'mask', 'half', 'brain', 'text']);
    expect(freeDims).toEqual(['batch', 'length']);
    expect(operators).toMatchObject({ Gather: 1, Mul: 1, Cast: 1 });
    expect(size).toBe(bytes.length);
    const { stdout } = infernode('check', 'model.onnx');
    expect(stdout).toMatch(/pixels: float32\[batch, 4\][^]*1 Gather on cpu[^]*Free dims: batch, length\n/);
  });

  it('names all operators that are not known', () => {
    const x = info('x', 'float32', [1]);
    writeFileSync(join(folder, 'odd.onnx'), oneNode('Odd', [x], [info('y', 'float32', [1])]));
    expect(infernode('check', 'odd.onnx')).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^infernode: .*Odd/s),
    });
  });
});

describe('infernode perf', () => {
  it('runs the model on feeds of every type, as often as it is told', () => {
    const figures = found('perf', 'model.onnx', '--runs', '7', '-f', 'batch:3', '-c', '2');
    expect(figures).toMatchObject({ path: 'model.onnx', runs: 7 });
    const { min, p50, p90, p99, p999, max, mean } = figures.latencyMs;
    expect([min, p50, p90, p99, p999, max]).toEqual(
      [min, p50, p90, p99, p999, max].sort((a: number, b: number) => a - b),
    );
    expect(min).toBeGreaterThan(0);
    expect(mean).toBeLessThanOrEqual(max);
    for (const key of ['loadMs', 'firstRunMs', 'runsPerSecond', 'sessionBytes', 'peakBytes'])
      expect(figures[key], key).toBeGreaterThan(0);
    const { stdout } = infernode('perf', 'model.onnx', '--runs', '2', '--warm-up', '0', '--shape', 'text:', '-o', '0');
    expect(stdout).toMatch(/^ {2}load +\S+ ms\n[^]* runs +2\n[^]*p99\.9 +\S+ ms\n/);
  });

  it('has the sizes that a shape gives in other inputs, too', () => {
    expect(found('perf', 'model.onnx', '-r', '1', '--shape', 'pixels:5,4').runs).toBe(1);
    const { status, stderr } = infernode('perf', 'model.onnx', '-r', '1', '--shape', 'pixels:5,3');
    expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining('pixels') });
  });

  it('counts as statistics does', () => {
    const times = Array.from({ length: 1000 }, (_, i) => 1000 - i);
    const { mean, min, p50, p90, p99, p999, max, deviation } = statistics(times);
    expect({ mean, min, p50, p90, p99, p999, max }).toEqual({ mean: 500.5, min: 1, p50: 500, p90: 900, p99: 990, p999: 999, max: 1000 }); // prettier-ignore
    expect(deviation).toBeCloseTo(288.675, 3);
    expect(statistics([5])).toMatchObject({ mean: 5, deviation: 0, min: 5, p999: 5, max: 5 });
  });
});

describe('infernode profile', () => {
  it('tells the time of operators and nodes, and writes the trace', () => {
    const { path, runs, operators, nodes } = found('profile', 'model.onnx', '-r', '3', '--nodes', '2', '--out', 'trace.json'); // prettier-ignore
    expect({ path, runs }).toEqual({ path: 'trace.json', runs: 3 });
    expect(operators.find(({ opType }: { opType: string }) => opType === 'Gather')).toMatchObject({ count: 3 });
    expect(nodes).toHaveLength(2);
    expect(nodes[0].microseconds).toBeGreaterThanOrEqual(nodes[1].microseconds);
    const events = JSON.parse(readFileSync(join(folder, 'trace.json'), 'utf8'));
    expect(events.filter(({ name }: { name: string }) => name === 'model_run')).toHaveLength(3);
    expect(readdirSync(folder).filter((name) => name.endsWith('.json'))).toEqual(['trace.json']);
  });

  it('leaves the trace in the working folder where nobody says where to', () => {
    const { stdout } = infernode('profile', 'model.onnx', '-r', '2');
    expect(stdout).toMatch(/^2 runs of \S+ ms each[^]*Gather on \S+ +1 [^]*of the run/);
    const [, path] = /The trace, for Perfetto or chrome:\/\/tracing: (.*)\n$/.exec(stdout)!;
    expect(existsSync(join(folder, path!))).toBe(true);
  });
});

describe('the command', () => {
  it.each([
    [['perf'], 'perf takes one model'],
    [['perf', 'a.onnx', 'b.onnx'], 'perf takes one model'],
    [['perf', 'model.onnx', '--bogus'], "Unknown option '--bogus'"],
    [['perf', 'model.onnx', '--dim', 'length:x'], "--dim takes NAME:SIZE, not 'length:x'"],
    [['perf', 'model.onnx', '--dim', 'width:3'], "the model has no free dim 'width': it has batch, length"],
    [['perf', 'model.onnx', '--shape', 'pixel:3'], "the model has no input 'pixel': it has ids, pixels,"],
    [['perf', 'model.onnx', '--seed', 'x'], "--seed takes a whole number of at least 0, not 'x'"],
    [['perf', 'model.onnx', '--runs', '0'], "--runs takes a whole number of at least 1, not '0'"],
    [['profile', 'model.onnx', '--level', 'most'], "'graphOptimizationLevel' must be one of"],
    [['bake', 'model.onnx'], 'usage: infernode COMMAND MODEL'],
  ])('refuses %j', (args, message) => {
    expect(infernode(...args)).toMatchObject({ status: 2, stdout: '', stderr: expect.stringContaining(message) });
  });

  it.each([
    [['perf', 'nowhere.onnx'], "File doesn't exist"],
    [['perf', 'model.onnx', '-e', 'coreml'], 'coreml'],
  ])('ends with 1 for %j', (args, message) => {
    expect(infernode(...args)).toMatchObject({ status: 1, stdout: '', stderr: expect.stringContaining(message) });
  });

  it('has a page that names all commands and options', () => {
    const page = readFileSync(join(projectRoot, 'docs', 'command.md'), 'utf8');
    const { stdout } = infernode('--help');
    const names = [...stdout.matchAll(/^([a-z]+) {2,}/gm)].map(([, name]) => name!);
    expect(names).toEqual(['check', 'perf', 'profile', 'types']);
    for (const name of names) expect(page).toContain(`| \`${name}\` |`);
    for (const name of ['check', 'perf', 'profile']) {
      for (const [option] of infernode(name, '--help').stdout.matchAll(/--[a-z-]+/g)) expect(page).toContain(option);
    }
  });
});
