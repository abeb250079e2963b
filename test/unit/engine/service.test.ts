import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, copyFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { projectRoot } from '../../../scripts/lib/engine.mjs';
import { ours } from '../../fixtures/engine.js';
import { rounds } from './models.js';

// The example as a user has it: in a folder of its own, with the package installed.
const folder = mkdtempSync(join(tmpdir(), 'infernode-service-'));
let server: ChildProcess | undefined;
let url: string;
let said = '';

beforeAll(async () => {
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(projectRoot, join(folder, 'node_modules', 'infernode'), 'junction');
  copyFileSync(join(projectRoot, 'examples', 'service', 'server.mjs'), join(folder, 'server.mjs'));
  writeFileSync(join(folder, 'model.onnx'), rounds(false));
  server = spawn(
    process.execPath,
    ['server.mjs', 'model.onnx', '--port', '0', '--timeout', '300', '--max-queue', '4'],
    { cwd: folder },
  );
  server.stdout!.on('data', (text) => (said += text));
  await vi.waitFor(() => expect(said).toMatch(/port \d+/), { timeout: 20_000 });
  url = `http://127.0.0.1:${/port (\d+)/.exec(said)![1]}/run`;
});
afterAll(() => {
  server?.kill();
  rmSync(folder, { recursive: true, force: true });
});

const feeds = (count: number): string =>
  JSON.stringify({ n: { dims: [], data: [count] }, x: { dims: [2], data: [1, 2] } });
const post = (body: string, signal?: AbortSignal) => fetch(url, { method: 'POST', body, signal: signal ?? null });
const endless = 2 ** 50;

describe.runIf(ours)('the HTTP service example', () => {
  it('answers', async () => {
    const response = await post(feeds(3));
    expect([response.status, await response.json()]).toEqual([
      200,
      { y: { type: 'float32', dims: [2], data: [-1, -2] } },
    ]);
  });

  it('tells 504 and 499 apart', async () => {
    const late = await post(feeds(endless));
    expect(late.status).toBe(504);
    expect(await late.json()).toMatchObject({ code: 'ABORTED' });
    const before = said.length;
    await post(feeds(endless), AbortSignal.timeout(50)).catch(() => undefined);
    await expect.poll(() => said.slice(before)).toMatch(/ 499\n/);
  });

  it('refuses what does not fit', async () => {
    const n = { dims: [], data: [1] };
    const bodies: [body: unknown, message: RegExp][] = [
      [{}, /input 'n' is missing/],
      [[], /an object of the inputs: n, x/],
      [{ n, x: { dims: [2, 2], data: [1, 2, 3, 4] } }, /invalid (rank|dimensions)/i],
      [{ n, x: { dims: [2] } }, /'x' needs 'data'/],
      [{ n, x: { data: [1, 2] } }, /'x' needs 'dims'/],
      [{ n, x: { dims: [2], data: [1, 'two'] } }, /data\[1\] of input 'x' is no number/],
      [{ n, x: { dims: [2], data: [1, 2, 3] } }, /data length/],
      [{ n, X: { dims: [2], data: [1, 2] } }, /no input 'X'/],
    ];
    for (const [body, message] of [['{', /no JSON/] as const, ...bodies]) {
      const response = await post(typeof body === 'string' ? body : JSON.stringify(body));
      expect([response.status, ((await response.json()) as { error: string }).error]).toEqual([400, expect.stringMatching(message)]); // prettier-ignore
    }
    const other = await fetch(url);
    expect([other.status, other.headers.get('allow')]).toEqual([405, 'POST']);
    expect((await fetch(url.replace('run', 'health'))).status).toBe(404);
  });

  it('answers 503 at once where --max-queue calls wait', async () => {
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => post(feeds(endless)).then(({ status }) => status)),
    );
    expect(answers.sort()).toEqual([503, 503, 504, 504, 504, 504]);
  });
});
