import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, describe, expect, it } from 'vitest';
import { projectRoot } from '../../../scripts/lib/engine.mjs';
import { ours } from '../../fixtures/engine.js';
import { model, node, type TensorInfo } from '../../fixtures/onnx-writer.js';

const folder = mkdtempSync(join(tmpdir(), 'infernode-address-space-'));
afterAll(() => rmSync(folder, { recursive: true }));

const path = join(folder, 'model.onnx');
const info = (name: string): TensorInfo => ({ name, type: 'float32', shape: ['n'] });
const weight = { name: 'w', type: 'float32', dims: [1 << 20], data: new Float32Array(1 << 20).fill(2) } as const;
writeFileSync(
  path,
  model({
    nodes: [node('Exp', ['x'], ['a']), node('Add', ['a', 'w'], ['b']), node('Relu', ['b'], ['y'])],
    inputs: [info('x')],
    outputs: [info('y')],
    initializers: [weight],
  }),
);

// The limit is set in a process that runs: what Node.js needs to start is there, what the engine needs is not.
const program = `
  const { execFileSync } = require('node:child_process');
  const { readFileSync } = require('node:fs');
  const { InferenceSession, Tensor } = require(${JSON.stringify(projectRoot)});
  const [megabytes, part] = [Number(process.argv[1]), process.argv[2]];
  const count = 1 << 20;
  const x = new Tensor('float32', new Float32Array(count), [count]);
  const limit = () => {
    gc(); // a collection that is under way ends the process where its threads get no memory
    const [, kilobytes] = /VmSize:\\s*(\\d+)/.exec(readFileSync('/proc/self/status', 'utf8'));
    const bytes = String(Number(kilobytes) * 1024 + megabytes * 2 ** 20);
    // Without pipes: Node.js ends the process where it has no memory for what it reads.
    execFileSync('prlimit', ['--pid', String(process.pid), '--as=' + bytes + ':' + bytes], { stdio: 'ignore' });
  };
  (async () => {
    const warm = await InferenceSession.create(new Uint8Array(3)).catch(() => undefined); // the addon is there
    if (part === 'load') limit();
    const session = await InferenceSession.create(${JSON.stringify(path)});
    if (part === 'run') limit();
    const { y } = await session.run({ x });
    return y.data.every((value) => value === 3) ? 'right' : 'wrong';
  })().then(console.log, ({ code }) => console.log(code));`;

describe.runIf(ours && existsSync('/usr/bin/prlimit'))('under an address-space limit close to what is needed', () => {
  const steps = [0, 1, 4, 16, 32, 64, 512];
  const quiet = ['--expose-gc', '--single-threaded-gc'];
  it.each(['load', 'run'])('a %s ends in an error or a right answer', { timeout: 120_000 }, async (part) => {
    const outcomes: string[] = [];
    for (const megabytes of steps) {
      const child = spawn(process.execPath, [...quiet, '-e', program, String(megabytes), part]);
      const [stdout, stderr, [status, signal]] = await Promise.all([
        text(child.stdout),
        text(child.stderr),
        once(child, 'close'),
      ]);
      // What V8 asks for itself is not the engine's.
      const byNode = /FATAL ERROR|out of memory/i.test(stderr) && !/terminate called|thread-local/.test(stderr);
      expect({ megabytes, stderr, ended: byNode || (status === 0 && signal === null) }).toMatchObject({ ended: true });
      outcomes.push(byNode ? 'Node.js' : stdout.trim());
    }
    const rest = outcomes.filter((outcome) => !['right', 'OUT_OF_MEMORY', 'Node.js'].includes(outcome));
    expect(rest).toEqual([]);
    expect(outcomes).toContain('OUT_OF_MEMORY');
    expect(outcomes.at(-1)).toBe('right');
  });
});
