// What docs/docker.md says is so: its Dockerfile, and every name in it.
import { spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { projectRoot } from '../../../scripts/lib/engine.mjs';
import { ort, ours } from '../../fixtures/engine.js';
import { oneNode } from '../../fixtures/onnx-writer.js';

const read = (...path: string[]) => readFileSync(join(projectRoot, ...path), 'utf8');
const page = read('docs', 'docker.md');
const dockerfile = /```dockerfile\n([^]*?)```/.exec(page)![1]!;
const prose = page.replace(/```[^]*?```/g, '');
const instruction = (name: string) => new RegExp(`^${name} (.*)$`, 'm').exec(dockerfile)![1]!;
const manifest = JSON.parse(read('package.json')) as { engines: { node: string }; scripts: Record<string, string> };

const relu = oneNode(
  'Relu',
  [{ name: 'x', type: 'float32', shape: ['n'] }],
  [{ name: 'y', type: 'float32', shape: ['n'] }],
);
const folder = mkdtempSync(join(tmpdir(), 'infernode-docker-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the page on Docker', () => {
  it('takes a Node.js that the package takes, and installs without scripts of ours', () => {
    const [, major] = /^node:(\d+)-slim$/.exec(instruction('FROM'))!;
    expect(Number(major)).toBeGreaterThanOrEqual(Number(/^>=(\d+)$/.exec(manifest.engines.node)![1]));
    for (const script of ['preinstall', 'install', 'postinstall']) expect(manifest.scripts).not.toHaveProperty(script);
  });

  it('copies what package.json names before it installs, and keeps node_modules of here out', () => {
    expect(page).toMatch(/^npm pack \.\.\/infernode && npm install \.\/infernode-[\d.]+\.tgz$/m);
    expect(dockerfile.indexOf('*.tgz')).toBeLessThan(dockerfile.indexOf('RUN npm ci'));
    expect(page).toMatch(/^printf '\S*node_modules\S*' > \.dockerignore/m);
  });

  it('has options that npm knows', () => {
    const { stdout } = spawnSync('npm', ['ci', '--help'], { encoding: 'utf8', shell: process.platform === 'win32' });
    const [, options] = /^npm ci (.*)$/.exec(instruction('RUN'))!;
    for (const option of options!.split(' ')) expect(stdout).toContain(option.replace('=', ' <').replace(/<\w+$/, '<'));
  });

  it.runIf(ours)('names files, options, codes and statuses that there are', async () => {
    const session = await ort.InferenceSession.create(relu);
    const schema = JSON.parse(read('src', 'options', 'schema.json')) as Record<'session' | 'run', { name: string }[]>;
    const options = [...schema.session, ...schema.run].map(({ name }) => name);
    const example = read('examples', 'service', 'server.mjs');
    const known: Record<string, () => boolean> = {
      slim: () => instruction('FROM').endsWith('-slim'),
      NO_BINARY: () => read('src', 'errors.ts').includes("'NO_BINARY'"),
      memoryLimit: () => options.includes('memoryLimit'),
      modelCacheDir: () => options.includes('modelCacheDir'),
      timeout: () => options.includes('timeout'),
      'session.memoryBytes': () => typeof session.memoryBytes === 'number',
      'await session.release()': () => example.includes('session.release()'),
      "process.once('SIGTERM', ...)": () => example.includes("process.once('SIGTERM',"),
      'examples/service/server.mjs': () => existsSync(join(projectRoot, 'examples', 'service', 'server.mjs')),
      'package.json': () => /^COPY package.json package-lock.json \*\.tgz/m.test(dockerfile),
      'npm ci': () => instruction('RUN').startsWith('npm ci '),
      'npm install ../infernode': () => true,
      // Docker's own
      '--cpus': () => true,
      '--cpus=2': () => true,
      '-v models:/cache': () => true,
    };
    for (const [, code] of prose.matchAll(/`([^`]+)`/g)) expect(known[code!]?.(), code).toBe(true);
    for (const [status] of prose.matchAll(/\b[45]\d\d\b/g)) expect(example).toContain(status);
    await session.release();
  });

  it.runIf(ours)('starts its service, which ends well at SIGTERM', async () => {
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(projectRoot, join(folder, 'node_modules', 'infernode'), 'junction');
    const [command, script, ...rest] = JSON.parse(instruction('CMD')) as [string, string, ...string[]];
    copyFileSync(join(projectRoot, 'examples', 'service', script), join(folder, script));
    writeFileSync(join(folder, 'model.onnx'), relu);
    const service = spawn(command, [script, ...rest, '--port', '0'], { cwd: folder });
    let said = '';
    service.stdout.on('data', (text) => (said += text));
    const ended = new Promise((resolve) => service.once('exit', (code, signal) => resolve([code, signal])));
    await vi.waitFor(() => expect(said).toMatch(/port \d+/), { timeout: 20_000 });
    const url = `http://127.0.0.1:${/port (\d+)/.exec(said)![1]}/run`;
    const body = JSON.stringify({ x: { dims: [2], data: [1, -2] } });
    const sent = Array.from({ length: 50 }, () => fetch(url, { method: 'POST', body }).then(({ status }) => status));
    await Promise.race(sent);
    service.kill('SIGTERM');
    expect(new Set(await Promise.all(sent))).toEqual(new Set([200])); // those that were sent are answered
    expect(await ended).toEqual([0, null]);
  });
});
