// An HTTP service over a model: POST /run with JSON { input: { dims, data } } answers JSON of the outputs.
//
// usage: node server.mjs model.onnx [--port 8080] [--timeout 1000]
//
// 504 where the model takes too long, 499 (in the log alone: nobody is left to read it) where the client has gone, 503 where too many
// wait, 400 for feeds that do not fit.
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';
import { createBatcher, InferenceError, InferenceSession, Tensor } from 'infernode';

const mostBytes = 64e6;

/** The status of an answer that failed. */
export function statusOf(error) {
  if (error.name === 'TimeoutError') return 504;
  if (error.name === 'AbortError') return 499;
  if (error.code === 'QUEUE_FULL' || error.code === 'OUT_OF_MEMORY' || error.code === 'DISPOSED') return 503;
  if (error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError) return 400;
  return error.code === 'INVALID_ARGUMENT' || error.code === 'SHAPE_MISMATCH' ? 400 : 500;
}

async function readJson(request) {
  const chunks = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > mostBytes) throw new RangeError(`more than ${mostBytes} bytes`);
    chunks.push(chunk);
  }
  return JSON.parse(Buffer.concat(chunks).toString());
}

const arrays = { float32: Float32Array, float64: Float64Array, int32: Int32Array, uint8: Uint8Array, bool: Uint8Array };

/** Tensors of what a client sent, by the types of the model's inputs. */
function feedsOf(session, body) {
  const entries = session.inputMetadata.map(({ name, type }) => {
    const given = body?.[name];
    if (typeof given !== 'object' || given === null) throw new TypeError(`input '${name}' is missing`);
    const data = arrays[type] === undefined ? given.data : arrays[type].from(given.data);
    return [name, new Tensor(type, data, given.dims)];
  });
  return Object.fromEntries(entries);
}

const jsonOf = (results) =>
  JSON.stringify(
    Object.fromEntries(
      Object.entries(results).map(([name, { type, dims, data }]) => [name, { type, dims, data: Array.from(data) }]),
    ),
    (_, value) => (typeof value === 'bigint' ? Number(value) : value),
  );

/**
 * A server that answers by `run(feeds, { signal, timeout })`. `log` hears the status of every request.
 * @param {{ session: import('infernode').InferenceSession, run: Function, timeout: number, log?: (status: number) => void }} parts
 */
export function makeServer({ session, run, timeout, log = () => undefined }) {
  return createServer(async (request, response) => {
    const gone = new AbortController();
    response.on('close', () => {
      if (!response.writableEnded) gone.abort();
    });
    let status = 200;
    let text;
    try {
      if (request.method !== 'POST' || request.url !== '/run') throw new TypeError('POST /run');
      const feeds = feedsOf(session, await readJson(request));
      text = jsonOf(await run(feeds, { signal: gone.signal, timeout }));
    } catch (error) {
      status = gone.signal.aborted ? 499 : statusOf(error);
      const code = error instanceof InferenceError ? error.code : undefined;
      text = JSON.stringify({ error: status === 500 ? 'internal error' : error.message, code });
      if (status === 500) console.error(error);
    }
    log(status);
    if (!response.destroyed) response.writeHead(status, { 'content-type': 'application/json' }).end(text);
  });
}

/** What answers calls: runs of many at once where the model has rows for them, else each by itself. */
export function runnerOf(session) {
  try {
    const batcher = createBatcher(session);
    return (feeds, options) => batcher.run(feeds, options);
  } catch {
    return (feeds, options) => session.run(feeds, options);
  }
}

if (process.argv[1]?.endsWith('server.mjs')) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { port: { type: 'string', default: '8080' }, timeout: { type: 'string', default: '1000' } },
  });
  if (positionals.length !== 1) throw new Error('usage: node server.mjs model.onnx [--port 8080] [--timeout 1000]');
  const session = await InferenceSession.create(positionals[0]);
  const server = makeServer({
    session,
    run: runnerOf(session),
    timeout: Number(values.timeout),
    log: (status) => console.log(`${new Date().toISOString()} ${status}`),
  });
  server.listen(Number(values.port), () => console.log(`listening on port ${server.address().port}`));
  process.once('SIGTERM', () => server.close(() => session.release()));
}
