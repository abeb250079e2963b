import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { projectRoot } from '../../../scripts/lib/engine.mjs';
import { peerFolder } from '../../../scripts/lib/peer.mjs';
import { ours } from '../../fixtures/engine.js';
import { add } from '../../fixtures/models.js';

const start = promisify(execFile);

/** A folder of modules as `npm install infernode onnxruntime-node` lays them out: one onnxruntime-common for both. */
let folder: string;
const modules = (...names: string[]): string => join(folder, 'node_modules', ...names);
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'infernode-beside-'));
  mkdirSync(modules('infernode', 'build'), { recursive: true });
  for (const name of ['onnxruntime-common', 'node-gyp-build']) {
    cpSync(join(projectRoot, 'node_modules', name), modules(name), { recursive: true });
  }
  for (const name of ['dist', 'package.json', 'build/Release']) {
    symlinkSync(join(projectRoot, name), modules('infernode', name));
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const program = `
  const load = require('node:module').createRequire(process.argv[1] + '/');
  const bytes = Buffer.from(process.argv[2], 'base64');
  (async () => {
    const packages = Object.fromEntries(process.argv[3].split(',').map((name) => [name, load(name)]));
    const said = { sameCommon: new Set(Object.values(packages).map(({ env }) => env)).size };
    for (const [name, { InferenceSession, Tensor }] of Object.entries(packages)) {
      const session = await InferenceSession.create(bytes);
      const ones = () => new Tensor('float32', [1, 1], [2]);
      const { c } = await session.run({ a: ones(), b: ones() });
      said[name] = { answer: [...c.data], engine: 'handler' in session && 'native' in session.handler ? 'infernode' : 'peer' };
      await session.release();
    }
    console.log(JSON.stringify(said));
  })();`;

describe.runIf(ours)('infernode and onnxruntime-node with one onnxruntime-common', () => {
  it.each(['infernode,onnxruntime-node', 'onnxruntime-node,infernode'])('live in one process: %s', async (order) => {
    const peer = await peerFolder();
    cpSync(peer, modules('onnxruntime-node'), { recursive: true, force: false });
    const args = ['--preserve-symlinks', '-e', program, folder, Buffer.from(add()).toString('base64'), order];
    const { stdout } = await start(process.execPath, args, { env: { ...process.env, ORT_DISABLE_TELEMETRY: '1' } });
    expect(JSON.parse(stdout)).toEqual({
      sameCommon: 1,
      infernode: { answer: [2, 2], engine: 'infernode' },
      'onnxruntime-node': { answer: [2, 2], engine: 'peer' },
    });
  });
});
