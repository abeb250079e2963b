import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { projectRoot } from '../../scripts/lib/engine.mjs';
import { model, node, type TensorInfo } from '../fixtures/onnx-writer.js';

const folder = mkdtempSync(join(tmpdir(), 'infernode-types-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const command = join(projectRoot, 'dist', 'infernode.cjs');
const info = (name: string, type: TensorInfo['type'], shape: TensorInfo['shape']): TensorInfo => ({
  name,
  type,
  shape,
});

const bytes = model({
  nodes: [
    node('Identity', ['input_ids'], ['last hidden']),
    node('Mul', ['pixels', 'scale'], ['y']),
    node('SequenceConstruct', ['pixels'], ['list']),
  ],
  inputs: [info('input_ids', 'int64', ['batch', 'sequence']), info('pixels', 'float32', ['batch', 3]), info('scale', 'float32', [1])], // prettier-ignore
  outputs: [
    info('last hidden', 'int64', ['batch', 'sequence']),
    info('y', 'float32', ['batch', 3]),
    { ...info('list', 'float32', ['batch', 3]), kind: 'sequence' },
  ],
  initializers: [{ name: 'scale', type: 'float32', dims: [1], data: Float32Array.of(2) }],
});

describe('infernode types', () => {
  const path = join(folder, 'my-bert v2.onnx');
  const expected = `// Written by \`infernode types my-bert v2.onnx\`: do not edit.
import type { ModelTensor, ModelValue } from 'infernode';

export interface MyBertV2 {
  inputs: {
    input_ids: ModelTensor<'int64', ["batch", "sequence"]>;
    pixels: ModelTensor<'float32', ["batch", 3]>;
  };
  optionalInputs: {
    scale: ModelTensor<'float32', [1]>;
  };
  outputs: {
    "last hidden": ModelTensor<'int64', ["batch", "sequence"]>;
    y: ModelTensor<'float32', ["batch", 3]>;
    list: ModelValue;
  };
}
`;

  it("writes a .d.ts of a model's inputs and outputs", () => {
    writeFileSync(path, bytes);
    const { stderr } = spawnSync(process.execPath, [command, 'types', path], { encoding: 'utf8' });
    expect(stderr).toBe(`wrote ${join(folder, 'my-bert v2.d.ts')}\n`);
    expect(readFileSync(join(folder, 'my-bert v2.d.ts'), 'utf8')).toBe(expected);
    const out = execFileSync(process.execPath, [command, 'types', path, '--out', '-', '--name', 'Mine'], { encoding: 'utf8' }); // prettier-ignore
    expect(out).toBe(expected.replace('MyBertV2', 'Mine'));
  });

  it('replaces what it wrote, and what others wrote by --force alone', () => {
    const hand = join(folder, 'hand.d.ts');
    const types = (...args: string[]) => spawnSync(process.execPath, [command, 'types', path, '--out', hand, ...args], { encoding: 'utf8' }); // prettier-ignore
    writeFileSync(hand, 'export const mine = 1;\n');
    const refused = { status: 2, stderr: expect.stringContaining('was not written by this command: name another file, or give --force') }; // prettier-ignore
    expect(types()).toMatchObject(refused);
    expect(readFileSync(hand, 'utf8')).toBe('export const mine = 1;\n');
    expect(types('--force').status).toBe(0);
    expect(readFileSync(hand, 'utf8')).toBe(expected);
    expect(types('--name', 'Other').status).toBe(0);
    expect(readFileSync(hand, 'utf8')).toContain('export interface Other {');
  });

  it('tells its version', () => {
    const { version } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8'));
    expect(execFileSync(process.execPath, [command, '--version'], { encoding: 'utf8' })).toBe(`${version}\n`);
  });

  it('writes what TypeScript takes, whatever the names', () => {
    const written = (name: string, ...args: string[]): string => {
      const odd = join(folder, name);
      writeFileSync(odd, bytes);
      return execFileSync(process.execPath, [command, 'types', odd, '--out', '-', ...args], { encoding: 'utf8' });
    };
    expect(written('ModelTensor.onnx')).toContain('export interface ModelModelTensor {');
    if (process.platform !== 'win32') expect(written('a\u2028`b.onnx')).toContain('`infernode types a  b.onnx`');
    const twice = model({
      nodes: [node('Neg', ['x'], ['y'])],
      inputs: [info('x', 'float32', [1])],
      outputs: [info('y', 'float32', [1]), info('y', 'float32', [1])],
    });
    const path = join(folder, 'twice.onnx');
    writeFileSync(path, twice);
    const text = execFileSync(process.execPath, [command, 'types', path, '--out', '-'], { encoding: 'utf8' });
    expect(text.match(/ y:/g)).toHaveLength(1);
    for (const name of ['class', 'string', 'any', 'ModelValue']) {
      expect(spawnSync(process.execPath, [command, 'types', path, '--name', name]).status, name).toBe(2);
    }
  });

  it('says what is wrong', () => {
    const failing = (...args: string[]) => spawnSync(process.execPath, [command, ...args], { encoding: 'utf8' });
    expect(failing('types', join(folder, 'none.onnx'))).toMatchObject({ status: 1, stderr: expect.stringMatching(/^infernode: .*File doesn't exist/) }); // prettier-ignore
    expect(failing('types')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('types takes one model'),
    });
    expect(failing('types', '--help')).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('usage: infernode types MODEL'),
    });
    expect(failing('types', path, '--name', 'not a name')).toMatchObject({ status: 2 });
  });
});
