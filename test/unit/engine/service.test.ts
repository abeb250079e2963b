import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, copyFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { projectRoot } from '../../../scripts/lib/engine.mjs';
import { ours } from '../../fixtures/engine.js';
import { model, node } from '../../fixtures/onnx-writer.js';
import { rounds } from './models.js';

// The example as a user has it: in a folder of its own, with the package installed.
const folder = mkdtempSync(join(tmpdir(), 'infernode-service-'));
const servers: ChildProcess[] = [];
let url: string;
let said = '';

/** The address of a server of a model; `heard` gets what it prints. */
async function serve(name: string, bytes: Uint8Array, heard: (text: string) => void): Promise<string> {
  writeFileSync(join(folder, name), bytes);
  const flags = ['--port', '0', '--timeout', '300', '--max-queue', '4'];
  const server = spawn(process.execPath, ['server.mjs', name, ...flags], { cwd: folder });
  servers.push(server);
  let text = '';
  server.stdout.on('data', (more) => {
    text += more;
    heard(String(more));
  });
  await vi.waitFor(() => expect(text).toMatch(/port \d+/), { timeout: 20_000 });
  return `http://127.0.0.1:${/port (\d+)/.exec(text)![1]}/run`;
}

beforeAll(async () => {
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(projectRoot, join(folder, 'node_modules', 'infernode'), 'junction');
  copyFileSync(join(projectRoot, 'examples', 'service', 'server.mjs'), join(folder, 'server.mjs'));
  url = await serve('model.onnx', rounds(false), (text) => (said += text));
});
afterAll(() => {
  for (const server of servers) server.kill();
  rmSync(folder, { recursive: true, force: true });
});

/** Inputs of several types, each with an output that is the same, and the root of one. */
function kinds(): Uint8Array {
  const types = { b: 'int8', u: 'uint64', i: 'int64', f: 'float32' } as const;
  const info = (end: string) =>
    Object.entries(types).map(([name, type]) => ({ name: `${name}${end}`, type, shape: ['rows'] }));
  return model({
    nodes: [
      ...Object.keys(types).map((name) => node('Identity', [name], [`${name}_out`])),
      node('Sqrt', ['f'], ['root']),
    ],
    inputs: info(''),
    outputs: [...info('_out'), { name: 'root', type: 'float32', shape: ['rows'] }],
  });
}

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
      [{ n, x: { dims: [2], data: [1, 'two'] } }, /data\[1\] of input 'x' is no float32/],
      [{ n, x: { dims: [2], data: [1, 2, 3] } }, /input 'x': .*data length/],
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

  it('refuses values that a type does not hold, and rounds none', async () => {
    const at = await serve('kinds.onnx', kinds(), () => undefined);
    const ask = async (values: Record<string, unknown>): Promise<[status: number, body: Record<string, unknown>]> => {
      const body = Object.entries({ b: 0, u: 0, i: 0, f: 0, ...values }).map(([name, value]) => [
        name,
        { dims: [1], data: [value] },
      ]);
      const text = JSON.stringify(Object.fromEntries(body)).replaceAll('"huge"', '1e400');
      const response = await fetch(at, { method: 'POST', body: text });
      return [response.status, (await response.json()) as Record<string, unknown>];
    };
    const wrong = [
      { b: 128 },
      { b: -129 },
      { b: 1.5 },
      { u: -1 },
      { u: '-1' },
      { u: String(2n ** 64n) },
      { i: 2 ** 70 },
      { i: 2 ** 53 },
      { i: String(2n ** 63n) },
      { i: '0x1' },
      { f: 1e39 },
      { f: 'huge' },
      { f: '1' },
    ];
    for (const values of wrong) {
      const [name] = Object.keys(values) as [string];
      const [status, body] = await ask(values);
      expect([values, status, body['error']]).toEqual([values, 400, expect.stringMatching(`^data\\[0\\] of input '${name}' is no `)]); // prettier-ignore
    }
    const most = { b: -128, u: String(2n ** 64n - 1n), i: String(-(2n ** 63n)), f: 3.4028234663852886e38 };
    const [status, body] = await ask(most);
    expect(status).toBe(200);
    for (const [name, value] of Object.entries(most)) expect(body[`${name}_out`]).toMatchObject({ data: [value] });
    expect((await ask({ f: -1 }))[1]).toMatchObject({ root: { data: ['NaN'] }, i_out: { data: [0] } });
  });

  it('answers 503 at once where --max-queue calls wait', async () => {
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => post(feeds(endless)).then(({ status }) => status)),
    );
    expect(answers.sort()).toEqual([503, 503, 504, 504, 504, 504]);
  });
});
