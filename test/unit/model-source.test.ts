import { createServer, type Server } from 'node:http';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { addon, failureOf, InferenceSession } from './support/session.js';

const bytes = Uint8Array.from({ length: 200_000 }, (_, i) => i % 251);
let server: Server;
let base: string;

beforeAll(async () => {
  server = createServer(({ url, headers }, response) => {
    if (url === '/model.onnx') response.writeHead(200, { 'content-length': bytes.length }).end(bytes);
    else if (url === '/endless') response.writeHead(200).write(bytes);
    else if (url === '/cut')
      response.writeHead(200, { 'content-length': 2 * bytes.length }).write(bytes, () => response.destroy()); // prettier-ignore
    else if (url === '/private' && headers.authorization === `Basic ${btoa('user:se:cret')}`) response.end(bytes);
    else response.writeHead(404).end('no');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  base = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => void addon.reset());

const read = (): unknown => addon.created.at(-1)!.source;

describe('a model from', () => {
  it.each([
    ['a file URL', pathToFileURL('/folder/a b.onnx')],
    ['the text of a file URL', pathToFileURL('/folder/a b.onnx').href],
  ])('%s is the file of that path', async (_, model) => {
    await InferenceSession.create(model);
    expect(read()).toBe('/folder/a b.onnx');
    InferenceSession.createSync(model);
    expect(read()).toBe('/folder/a b.onnx');
  });

  it.each<[string, () => any]>([
    ['a URL', () => new URL('/model.onnx', base)],
    ['a data: URL', () => new URL(`data:application/octet-stream;base64,${Buffer.from(bytes).toString('base64')}`)],
    ['a Blob', () => new Blob([bytes])],
    ['a Response', () => fetch(`${base}/model.onnx`)],
    ['a ReadableStream', () => new Blob([bytes]).stream()],
    ['a Readable', () => Readable.from([Buffer.from(bytes.subarray(0, 9)), Buffer.from(bytes.subarray(9))])],
  ])('%s has its bytes', async (_, model) => {
    await InferenceSession.create(await model());
    expect(Buffer.compare(read() as Uint8Array, bytes)).toBe(0);
  });

  it('a stream that writes its chunks over one another has its bytes, however many were announced', async () => {
    const whole = Uint8Array.from({ length: 9_000_001 }, (_, i) => i % 251);
    async function* chunks(): AsyncGenerator<Uint8Array> {
      const chunk = new Uint8Array(700_000);
      for (let begin = 0; begin < whole.length; begin += chunk.length) {
        const part = whole.subarray(begin, begin + chunk.length);
        chunk.set(part);
        yield chunk.subarray(0, part.length);
      }
    }
    const announced = (length: number): any => ({
      ok: true,
      headers: new Headers({ 'content-length': String(length) }),
      body: chunks(),
      arrayBuffer: () => undefined,
    });
    for (const source of [chunks(), announced(10), announced(whole.length), announced(10_000_000), new Blob([whole])]) {
      await InferenceSession.create(source);
      expect(Buffer.compare(read() as Uint8Array, whole)).toBe(0);
    }
  });

  it('a stream lets go of what has been read', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const given: WeakRef<Uint8Array>[] = [];
    let held: number | undefined;
    async function* chunks(): AsyncGenerator<Uint8Array> {
      for (let i = 0; i < 20; i++) {
        const chunk = new Uint8Array(1 << 16);
        given.push(new WeakRef(chunk));
        yield chunk;
      }
      await sleep(1); // what a turn of the loop looked at lives until its end
      collect();
      held = given.filter((chunk) => chunk.deref() !== undefined).length;
    }
    await InferenceSession.create(chunks());
    expect(held).toBeLessThan(3); // not the last ones, which are still in hand
  });

  it('a stream has progress', async () => {
    const heard: any[] = [];
    const onProgress = (progress: any): void => void heard.push(progress);
    await InferenceSession.create(new URL('/model.onnx', base), { onProgress });
    const phases = heard.map(({ phase }) => phase);
    expect(phases.slice(-2)).toEqual(['prepare', 'ready']);
    expect(new Set(phases.slice(0, -2))).toEqual(new Set(['read']));
    expect(heard.at(-3)).toEqual({ phase: 'read', loaded: bytes.length, total: bytes.length });
    for (let i = 1; i < heard.length - 2; i++) expect(heard[i].loaded).toBeGreaterThan(heard[i - 1].loaded);

    heard.length = 0;
    await InferenceSession.create(bytes, { onProgress });
    expect(heard).toEqual(['prepare', 'ready'].map((phase) => ({ phase, loaded: bytes.length, total: bytes.length })));
    const wrong = await failureOf(() => InferenceSession.create('m', { onProgress: 1 as any }));
    expect(wrong).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(/'onProgress' must be a func/) }); // prettier-ignore
  });
});

it('a URL may have a name and a password', async () => {
  const url = new URL('/private', base);
  url.username = 'user';
  url.password = 'se:cret';
  await InferenceSession.create(url);
  expect(Buffer.compare(read() as Uint8Array, bytes)).toBe(0);
  url.pathname = '/none';
  const error = await failureOf(() => InferenceSession.create(url));
  expect(error).toMatchObject({ code: 'IO', message: expect.stringMatching(/failed: the server answered 404/) });
  expect(error.message).not.toMatch(/user|cret/);
});

it.each<[string, () => any]>([
  ['a ReadableStream', () => new ReadableStream({})],
  ['a Response', () => new Response(new ReadableStream({}))],
  ['an iterable', () => (async function* () { await new Promise(() => undefined); yield bytes; })()], // prettier-ignore
])('a signal ends the wait for %s that gives nothing', async (_, model) => {
  const controller = new AbortController();
  const failure = failureOf(() => InferenceSession.create(model(), { signal: controller.signal }));
  await new Promise(setImmediate);
  controller.abort(new Error('enough'));
  expect(await failure).toMatchObject({ code: 'ABORTED', cause: controller.signal.reason });
});

describe('a model that cannot be read', () => {
  it('says why a connection failed', async () => {
    const closed = createServer();
    await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve));
    const { port } = closed.address() as { port: number };
    await new Promise((resolve) => closed.close(resolve));
    const error = await failureOf(() => InferenceSession.create(new URL(`http://127.0.0.1:${port}/m.onnx`)));
    expect(error).toMatchObject({ code: 'IO', message: expect.stringMatching(/failed: fetch failed: .*ECONNREFUSED/) });
  });

  it.each([
    [
      'is not there',
      '/none',
      /Load model from http:\/\/127\.0\.0\.1:\d+\/none failed: the server answered 404 Not Found\./,
    ],
    ['ends early', '/cut', /Load model from http:\/\/127\.0\.0\.1:\d+\/cut failed: /],
  ])('because it %s is an IO error', async (_, path, message) => {
    const error = await failureOf(() => InferenceSession.create(new URL(`${path}?key=secret`, base)));
    expect(error).toMatchObject({ code: 'IO', path: `${base}${path}`, message: expect.stringMatching(message) });
    expect(error.message).not.toContain('secret');
  });

  it('because the signal aborts is ABORTED', async () => {
    const controller = new AbortController();
    const loading = failureOf(() =>
      InferenceSession.create(new URL('/endless', base), {
        signal: controller.signal,
        onProgress: () => controller.abort('enough'),
      }),
    );
    expect(await loading).toMatchObject({ code: 'ABORTED', name: 'AbortError', cause: 'enough' });
  });

  it('tells how much had arrived of what was announced', async () => {
    const stream = new ReadableStream({
      pull(controller) {
        controller.enqueue(Uint8Array.of(1, 2));
        controller.error(new Error('the line is dead'));
      },
    });
    const announced = new Response(stream, { headers: { 'content-length': '5' } });
    const { message } = await failureOf(() => InferenceSession.create(announced));
    expect(message).toMatch(/^Load model from its stream failed: the line is dead \([02] of 5 bytes had arrived\)$/);
  });

  it('because its stream fails or has no bytes says so', async () => {
    const failing = async function* (): AsyncGenerator<Uint8Array> {
      yield bytes;
      throw new Error('the disk is gone');
    };
    expect(await failureOf(() => InferenceSession.create(failing()))).toMatchObject({
      code: 'IO',
      message: 'Load model from its stream failed: the disk is gone',
    });
    const text = await failureOf(() => InferenceSession.create(Readable.from(['text']) as any));
    expect(text).toBeInstanceOf(TypeError);
    expect(text.message).toBe("The model's stream must give bytes, got string.");
  });

  it('by createSync says what can', () => {
    expect(() => InferenceSession.createSync(new Blob([bytes]) as any)).toThrow(/Only 'create' reads URLs, Blobs/);
    expect(() => InferenceSession.createSync(new URL(base))).toThrow(/Only 'create' reads URLs, Blobs/);
  });
});
