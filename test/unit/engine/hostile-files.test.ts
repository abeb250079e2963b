import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { projectRoot } from '../../../scripts/lib/engine.mjs';
import { ours } from '../../fixtures/engine.js';
import { message, model, node, type TensorInfo } from '../../fixtures/onnx-writer.js';

const folder = mkdtempSync(join(tmpdir(), 'infernode-hostile-'));
afterAll(() => rmSync(folder, { recursive: true }));

const info = (name: string, type: TensorInfo['type'] = 'float32', shape: TensorInfo['shape'] = [1]): TensorInfo => ({ name, type, shape }); // prettier-ignore
const [x, y] = [info('x'), info('y')];
const text = (value: string) => ({ name: 't', type: 'string', dims: [1], data: [value] }) as const;
const count = (value: bigint, dims: number[]) => ({ name: 'n', type: 'int64', dims, data: BigInt64Array.of(value) }) as const; // prettier-ignore
const numbered = <T>(length: number, make: (i: number) => T): T[] => Array.from({ length }, (_, i) => make(i));

/** A field so many times. */
const many = (times: number, field: Parameters<typeof message>[0]) => {
  const bytes = message(field);
  return Buffer.alloc(times * bytes.length, bytes);
};
const noop = message([1, message([1, 'x'], [2, 'y'], [4, 'Neg'])]);
/** A model of the graph's fields and of fields of its own. */
const raw = (graph: Uint8Array, own: Uint8Array = new Uint8Array()) =>
  Buffer.concat([message([1, 8], [8, message([1, ''], [2, 17])], [7, graph]), own]);

/** A node of an operator that there is not, with one attribute. */
const unknown = (...attribute: Parameters<typeof message>) =>
  raw(message([1, message([4, 'No'], [5, Buffer.concat([message([1, 'a']), message(...attribute)])])]));
/** The same of as many parts of one field. */
const unknownOf = (type: number, times: number, field: Parameters<typeof message>[0]) =>
  raw(message([1, message([4, 'No'], [5, Buffer.concat([message([1, 'a'], [20, type]), many(times, field)])])]));
/** A graph whose one initializer holds so many parts of a field. */
const tensorOf = (type: number, times: number, field: Parameters<typeof message>[0], ...dims: number[]) =>
  raw(Buffer.concat([noop, message([5, Buffer.concat([message([2, type], [8, 'w']), ...dims.map((dim) => message([1, dim])), many(times, field)])])])); // prettier-ignore

/** One text of 50 KB, which a function hands on to 100 calls of another, whose 200 nodes each have it as an attribute. */
function passedOn(): Uint8Array {
  const handed = [5, message([1, 'a'], [21, 'a'], [20, 3])] as [number, Uint8Array];
  const call = (op: string, attribute: [number, Uint8Array], domain = 'l') => [7, message([1, 'x'], [2, 'y'], [4, op], attribute, [7, domain])] as [number, Uint8Array]; // prettier-ignore
  const chained = (times: number, op: string, domain?: string) =>
    numbered(times, (i): [number, Uint8Array] => [7, message([1, i === 0 ? 'x' : `v${i}`], [2, i === times - 1 ? 'y' : `v${i + 1}`], [4, op], handed, [7, domain ?? ''])]); // prettier-ignore
  const define = (name: string, nodes: [number, Uint8Array][]) =>
    message([25, message([1, name], [4, 'x'], [5, 'y'], [6, 'a'], ...nodes, [9, message([1, ''], [2, 17])], [9, message([1, 'l'], [2, 1])], [10, 'l'])]); // prettier-ignore
  const text = [5, message([1, 'a'], [20, 3], [4, 'a'.repeat(50_000)])] as [number, Uint8Array];
  const graph = message([1, call('F', text)[1]], [11, message([1, 'x'])], [12, message([1, 'y'])]);
  const functions = [define('F', chained(100, 'G', 'l')), define('G', chained(200, 'Neg'))];
  return raw(graph, Buffer.concat([message([8, message([1, 'l'], [2, 1])]), ...functions]));
}

/** A chain of nodes, by turns of each kind. */
const chain = (length: number, ...kinds: [op: string, ...others: string[]][]) =>
  model({
    nodes: numbered(length, (i) => {
      const [op, ...others] = kinds[i % kinds.length]!;
      return node(op, [`v${i}`, ...others], [`v${i + 1}`]);
    }),
    inputs: [info('v0', 'float32', [3, 3])],
    outputs: [info(`v${length}`, 'float32', [3, 3])],
    initializers: [
      { name: 'scale', type: 'float32', dims: [], data: Float32Array.of(0.5) },
      { name: 'zero', type: 'uint8', dims: [], data: Uint8Array.of(3) },
    ],
  });
const codes: [string, ...string[]][] = [['QuantizeLinear', 'scale', 'zero'], ['DequantizeLinear', 'scale', 'zero']]; // prettier-ignore
const chains = {
  'of Transposes and Relus': (length: number) => chain(length, ['Transpose'], ['Relu']),
  'of Transposes and sums of one value': (length: number) => chain(length, ['Transpose'], ['Add', 'v0']),
  'of products': (length: number) => chain(length, ['MatMul', 'v0']),
  'of pairs of codes': (length: number) => chain(length, ...codes),
} as const;

const files = {
  'of very many outputs': () =>
    model({
      nodes: numbered(20_000, (i) => node('Neg', ['x'], [`y${i}`])),
      inputs: [x],
      outputs: numbered(20_000, (i) => info(`y${i}`)),
    }),
  'of huge metadata': () =>
    model({
      nodes: [node('Neg', ['x'], ['y'])],
      inputs: [x],
      outputs: [y],
      properties: Object.fromEntries(numbered(100_000, (i) => [`key ${i}`, 'value'])),
    }),
  'of text that a loop doubles': () => {
    const body = {
      nodes: [node('Identity', ['k'], ['o']), node('StringConcat', ['v', 'v'], ['p'])],
      inputs: [info('i', 'int64', []), info('k', 'bool', []), info('v', 'string')],
      outputs: [info('o', 'bool', []), info('p', 'string')],
    };
    return model({
      opset: 20,
      nodes: [node('Loop', ['n', '', 't'], ['y'], { attributes: { body } })],
      outputs: [info('y', 'string')],
      initializers: [count(60n, []), text('abc')],
    });
  },
  'of strings repeated': () =>
    model({
      nodes: [node('Tile', ['t', 'n'], ['y'])],
      outputs: [info('y', 'string', ['many'])],
      initializers: [count(10_000n, [1]), text('abc'.repeat(1_000_000))],
    }),
  'of more nodes than a model has': () => raw(many(1_000_000, [1, message([4, 'Neg'])])),
  'of more properties than a model has': () => raw(noop, many(1_000_000, [14, message([1, 'k'])])),
  'of 100,000 outputs': () => {
    const names = numbered(100_000, (i) => `y${i}`);
    const nodes = names.map((name) => message([1, message([1, 'x'], [2, name], [4, 'Neg'])]));
    return raw(Buffer.concat([...nodes, ...names.map((name) => message([12, message([1, name])]))]));
  },
  'of an attribute of many strings': () => unknownOf(8, 1_000_000, [9, '']),
  'of as many strings as are read': () => unknownOf(8, 2_400_000, [9, '']),
  'of 20 MB of empty strings': () => unknownOf(8, 10_000_000, [9, '']),
  'of 20 MB of packed integers': () => unknown([20, 7], [8, Buffer.alloc(20_000_000, 1)]),
  'of 20 MB of empty tensors in a list': () => unknownOf(9, 10_000_000, [10, '']),
  'of a tensor of 20 MB of empty strings': () => tensorOf(8, 10_000_000, [6, ''], 10_000_000),
  'of a tensor of 20 MB of integers': () => tensorOf(7, 1, [7, Buffer.alloc(20_000_000, 1)], 20_000_000),
  'of a tensor of 20 MB of dims': () => tensorOf(1, 1, [1, Buffer.alloc(20_000_000, 1)]),
  'of 20 MB of empty graphs': () => raw(noop, many(10_000_000, [7, ''])),
  'of functions that hand on long text': passedOn,
  'whose external data is as large as a disk': () => {
    const location = 'large.bin';
    writeFileSync(join(folder, location), '');
    truncateSync(join(folder, location), 2 ** 40);
    const external = { location, length: 2 ** 40 };
    return model({
      nodes: [node('MatMul', ['x', 'w'], ['y'])],
      inputs: [info('x', 'float32', [3, 5])],
      outputs: [y],
      initializers: [{ name: 'w', type: 'float32', dims: [2 ** 20, 2 ** 18], data: new Float32Array(0), external }],
    });
  },
  'whose last operator does not exist': () =>
    model({
      nodes: [...numbered(20_000, (i) => node('Neg', [i === 0 ? 'x' : `v${i - 1}`], [`v${i}`])), node('No', ['v9'], ['y'])], // prettier-ignore
      inputs: [x],
      outputs: [y],
    }),
} as const;

/** What a process of its own pays for a load, whichever way it ends. */
function load(path: string): { outcome: string; seconds: number; megabytes: number } {
  const program = `
    const { InferenceSession } = require(${JSON.stringify(projectRoot)});
    const before = process.memoryUsage().rss;
    const busy = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1e6; };
    // resourceUsage().maxRSS begins at what the process that starts this one holds.
    const most = () => /VmHWM:\\s*(\\d+)/.exec(require('node:fs').readFileSync('/proc/self/status', 'utf8'))[1] * 1024;
    const started = busy();
    const end = (outcome) => console.log(JSON.stringify({
      outcome,
      seconds: busy() - started,
      megabytes: (most() - before) / 1e6,
    }));
    InferenceSession.create(${JSON.stringify(path)}, { logSeverityLevel: 4 }).then(() => end('loaded'), ({ code }) => end(code));`;
  const { stdout, stderr, status } = spawnSync(process.execPath, ['-e', program], { encoding: 'utf8', cwd: folder });
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
  return JSON.parse(stdout);
}

describe.runIf(ours && process.platform === 'linux')('time to load grows with the model, not with its square', () => {
  const secondsOf = (bytes: Uint8Array): number => {
    const path = join(folder, 'chain.onnx');
    writeFileSync(path, bytes);
    const { outcome, seconds } = load(path);
    expect(outcome).toBe('loaded');
    return seconds; // of processor time
  };

  it.each(Object.keys(chains))('chains %s', (what) => {
    const make = chains[what as keyof typeof chains];
    const base = secondsOf(chain(1, ['Transpose']));
    const [short, long] = [4000, 16_000].map((length) => secondsOf(make(length)) - base);
    expect(long).toBeLessThan(8 * Math.max(short!, 0.05)); // a square would be 16 times
  });
});

describe.runIf(ours && process.platform === 'linux')('hostile files that make a load long', () => {
  it.each<[keyof typeof files, string]>([
    ['of very many outputs', 'loaded'],
    ['of huge metadata', 'loaded'],
    ['of text that a loop doubles', 'loaded'],
    ['of strings repeated', 'loaded'],
    ['of more nodes than a model has', 'INVALID_MODEL'],
    ['of more properties than a model has', 'INVALID_MODEL'],
    ['of 100,000 outputs', 'INVALID_MODEL'],
    ['of an attribute of many strings', 'UNSUPPORTED_OPERATOR'],
    ['of as many strings as are read', 'UNSUPPORTED_OPERATOR'],
    ['of 20 MB of empty strings', 'INVALID_MODEL'],
    ['of 20 MB of packed integers', 'INVALID_MODEL'],
    ['of 20 MB of empty tensors in a list', 'INVALID_MODEL'],
    ['of a tensor of 20 MB of empty strings', 'INVALID_MODEL'],
    ['of a tensor of 20 MB of integers', 'INVALID_MODEL'],
    ['of a tensor of 20 MB of dims', 'INVALID_MODEL'],
    ['of 20 MB of empty graphs', 'INVALID_MODEL'],
    ['of functions that hand on long text', 'INVALID_MODEL'],
    ['whose external data is as large as a disk', 'SHAPE_MISMATCH'],
    ['whose last operator does not exist', 'UNSUPPORTED_OPERATOR'],
  ])('are bounded in time and memory: %s', (what, outcome) => {
    const path = join(folder, 'model.onnx');
    writeFileSync(path, files[what]());
    const paid = load(path);
    expect(paid.outcome).toBe(outcome);
    expect(paid.seconds).toBeLessThan(10); // of processor time
    expect(paid.megabytes).toBeLessThan(100);
  });

  it.each<[string, () => Uint8Array]>([
    ['of the smallest nodes', () => raw(many(60_000, [1, message([4, 'Neg'])]))],
    ['of strings without letters', files['of an attribute of many strings']],
    ['of properties', () => raw(noop, many(60_000, [14, message([1, 'k'])]))],
    ['of dims without a size', () => raw(Buffer.concat([noop, message([11, message([1, 'x'], [2, message([1, message([1, 1], [2, many(100_000, [1, ''])])])])])]))], // prettier-ignore
    ['of weights', () => model({ nodes: [node('No', ['x'], ['y'])], inputs: [x], outputs: [y], initializers: [{ name: 'w', type: 'float32', dims: [1_000_000], data: new Float32Array(1_000_000) }] })], // prettier-ignore
  ])(
    'never hold more than 150 times the file before they are validated, nor a refusal more than 100 MB: %s',
    (_, make) => {
      const path = join(folder, 'refused.onnx');
      const bytes = make();
      writeFileSync(path, bytes);
      const { megabytes } = load(path);
      const ownOfProcess = 12; // what a first load of any file touches
      expect(megabytes).toBeLessThan(Math.min(100, ownOfProcess + (150 * bytes.length) / 1e6));
    },
  );
});

it.runIf(ours && process.platform === 'linux')('no file is made that was not asked for, and nothing is sent', () => {
  const path = join(folder, 'quiet.onnx');
  writeFileSync(path, model({ nodes: [node('Neg', ['x'], ['y'])], inputs: [x], outputs: [y] }));
  const home = mkdtempSync(join(tmpdir(), 'infernode-home-'));
  const places = { HOME: home, TMPDIR: home, XDG_CACHE_HOME: home, XDG_CONFIG_HOME: home };
  const program = `
    const { readdirSync, readlinkSync } = require('node:fs');
    const { InferenceSession, Tensor } = require(${JSON.stringify(projectRoot)});
    const sockets = () => readdirSync('/proc/self/fd').filter((fd) => {
      try { return readlinkSync('/proc/self/fd/' + fd).startsWith('socket:'); } catch { return false; }
    }).length;
    const before = sockets();
    (async () => {
      const session = await InferenceSession.create(${JSON.stringify(path)});
      await session.run({ x: new Tensor('float32', Float32Array.of(1), [1]) });
      const during = sockets();
      await session.release();
      console.log(during - before);
    })();`;
  const env = { ...process.env, ...places };
  const { stdout, stderr } = spawnSync(process.execPath, ['-e', program], { encoding: 'utf8', cwd: home, env });
  const made = readdirSync(home);
  rmSync(home, { recursive: true });
  expect({ stdout, stderr, made }).toEqual({ stdout: '0\n', stderr: '', made: [] });
});
