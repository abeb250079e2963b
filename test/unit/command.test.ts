// infernode check, perf and profile as a user starts them; test/types/command.test.ts has infernode types.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { projectRoot } from '../../scripts/lib/engine.mjs';
import { statistics } from '../../src/cli/perf.js';
import { npy } from '../fixtures/npy.js';
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

const command = join(projectRoot, 'dist', 'infernode.cjs');
function infernode(...args: string[]): { status: number | null; stdout: string; stderr: string } {
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
    expect(figures).toMatchObject({ path: 'model.onnx', runs: 7, feeds: { ids: [3], pixels: [3, 4], text: [] } });
    const { min, p50, p90, p99, p999, max, mean } = figures.latencyMs;
    expect([min, p50, p90, p99, p999, max]).toEqual(
      [min, p50, p90, p99, p999, max].sort((a: number, b: number) => a - b),
    );
    expect(min).toBeGreaterThan(0);
    expect(mean).toBeLessThanOrEqual(max);
    for (const key of ['loadMs', 'firstRunMs', 'runsPerSecond', 'sessionBytes', 'peakBytes'])
      expect(figures[key], key).toBeGreaterThan(0);
    const { stdout } = infernode('perf', 'model.onnx', '--runs', '2', '--warm-up', '0', '--shape', 'text:', '-o', '0');
    expect(stdout).toMatch(
      /^fed: ids int64\[1\], pixels float32\[1, 4\],.* text string\[\]\n {2}load +\S+ ms\n[^]* runs +2\n[^]*p99\.9 +\S+ ms\n/,
    );
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
    expect(stdout).toMatch(/^fed: ids .*\n2 runs of \S+ ms each[^]*Gather on cpu +1 [^]*of the run/);
    const [, path] = /The trace, for Perfetto or chrome:\/\/tracing: (.*)\n$/.exec(stdout)!;
    expect(existsSync(join(folder, path!))).toBe(true);
  });
});

describe('the command', () => {
  it.each([
    [['perf'], 'perf takes one model'],
    [['perf', 'a.onnx', 'b.onnx'], 'perf takes one model'],
    [['perf', 'model.onnx', '--bogus'], "there is no option '--bogus'. The options are '--dim',"],
    [['perf', 'model.onnx', '--thread', '2'], "there is no option '--thread'. Did you mean '--threads'?"],
    [['check', 'https://host/x.onnx'], 'https://host/x.onnx is a URL: download it first'],
    [['types', 'model.onnx', '--out', 'hand.js'], '--out hand.js: declarations go into a file that ends in .ts'],
    [['perf', 'model.onnx', '--dim', 'length:x'], "--dim takes NAME:SIZE, not 'length:x'"],
    [['perf', 'model.onnx', '--dim', 'width:3'], "the model has no free dim 'width': it has batch, length"],
    [['perf', 'model.onnx', '--shape', 'pixel:3'], "the model has no input 'pixel': it has ids, pixels,"],
    [['perf', 'model.onnx', '--seed', 'x'], "--seed takes a whole number from 0 to 999999999, not 'x'"],
    [['perf', 'model.onnx', '--runs', '0'], "--runs takes a whole number from 1 to 999999999, not '0'"],
    [['perf', 'model.onnx', '-c', '100000000'], '--concurrent takes a whole number from 1 to 10000,'],
    [['profile', 'model.onnx', '--out', 'model.onnx'], '--out model.onnx is the model: name another file'],
    [['types', 'model.onnx', '--out', './model.onnx'], '--out ./model.onnx is the model'],
    [['types', 'model.onnx', '--out', ''], '--out takes the name of a file'],
    [['profile', 'model.onnx', '--out', '.'], '. is a folder'],
    [['profile', 'model.onnx', '--out', '-'], 'standard output has the table'],
    [['types', 'model.onnx', '--name', 'class'], "'class' is no name of an interface"],
    [['profile', 'model.onnx', '--level', 'most'], "'graphOptimizationLevel' must be one of"],
    [['profile', 'model.onnx', '--out', 'nowhere/trace.json'], 'there is no folder nowhere'],
    [['bake', 'model.onnx'], 'usage: infernode COMMAND MODEL'],
    [['chek', 'model.onnx'], "there is no command 'chek'. Did you mean 'check'?"],
  ])('refuses %j', (args, message) => {
    expect(infernode(...args)).toMatchObject({ status: 2, stdout: '', stderr: expect.stringContaining(message) });
  });

  it.each([
    [['perf', 'nowhere.onnx'], "File doesn't exist"],
    [['perf', 'model.onnx', '-e', 'coreml'], 'coreml'],
    [['perf', 'model.onnx', '-f', 'batch:9000000000'], "input 'ids' of type int64 and dims 9000000000 cannot be made"],
  ])('ends with 1 for %j', (args, message) => {
    expect(infernode(...args)).toMatchObject({ status: 1, stdout: '', stderr: expect.stringContaining(message) });
  });

  it('writes no trace, and runs nothing, where the file cannot be', () => {
    const before = readdirSync(folder);
    infernode('profile', 'model.onnx', '--out', 'nowhere/trace.json');
    expect(readdirSync(folder)).toEqual(before);
  });

  it.runIf(process.platform === 'linux')(
    'ends quietly when its reader has enough, and says when a disk is full',
    () => {
      const by = (shell: string) => spawnSync('bash', ['-c', shell], { cwd: folder, encoding: 'utf8' });
      const command = `'${process.execPath}' '${join(projectRoot, 'dist', 'infernode.cjs')}' check model.onnx --json`;
      expect(by(`${command} | true`)).toMatchObject({ stderr: '' });
      expect(by(`${command} > /dev/full`)).toMatchObject({
        status: 1,
        stderr: expect.stringMatching(/^infernode: ENOSPC.*\n$/),
      });
    },
  );

  it('has a page that names all commands and options', () => {
    const page = readFileSync(join(projectRoot, 'docs', 'command.md'), 'utf8');
    const { stdout } = infernode('--help');
    const names = [...stdout.matchAll(/^([a-z]+(?: [a-z]+)?) {2,}/gm)].map(([, name]) => name!);
    expect(names).toEqual(expect.arrayContaining(['types', 'quantize weights']));
    const guide = readFileSync(join(projectRoot, 'docs', 'quantization.md'), 'utf8');
    for (const name of names) {
      expect(page).toContain(`| \`${name}\` |`);
      const { stdout: help } = infernode(...name.split(' '), '--help');
      const place = name.startsWith('quantize') ? page + guide : page;
      for (const [option] of help.matchAll(/--[a-z-]+/g)) expect(place).toContain(option);
    }
  });

  const shown = ['README.md', 'docs/command.md', 'docs/quantization.md', 'docs/types.md'].flatMap((page) => {
    const text = readFileSync(join(projectRoot, page), 'utf8');
    return [...text.matchAll(/^npx infernode (.*?)(?: +#.*)?$/gm)].map(([, line]) => [page, line!] as const);
  });

  it('is shown on pages', () => expect(shown.length).toBeGreaterThanOrEqual(7));

  it.each(shown)('works as %s has it: %s', (_, line) => {
    const place = mkdtempSync(join(folder, 'shown-'));
    const name = /--shape (\w+):/.exec(line)?.[1] ?? 'pixels';
    const picture = (each: string): TensorInfo => info(each, 'float32', ['batch', 3, 224, 224]);
    const product = model({
      nodes: [node('MatMul', [name, 'w'], ['y'])],
      inputs: [picture(name)],
      outputs: [picture('y')],
      initializers: [{ name: 'w', type: 'float32', dims: [224, 224], data: new Float32Array(224 * 224).fill(1) }],
    });
    writeFileSync(join(place, 'model.onnx'), product);
    mkdirSync(join(place, 'runs')); // what --calibration-data is shown to name
    writeFileSync(join(place, 'runs', '0.npy'), npy(new Float32Array(3 * 224 * 224).fill(1), [1, 3, 224, 224]));
    const args = line.replace('--seconds 10', '--seconds 1').split(' '); // of ten the test needs no more
    const { status, stderr } = spawnSync(process.execPath, [command, ...args], { cwd: place, encoding: 'utf8' });
    expect({ status, stderr }).toEqual({ status: 0, stderr: args[0] === 'types' ? 'wrote model.d.ts\n' : '' });
    for (const [, file] of line.matchAll(/--out (\S+)/g)) expect(existsSync(join(place, file!))).toBe(true);
  });
});
