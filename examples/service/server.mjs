// An HTTP service over a model: POST /run with JSON { input: { dims, data } } answers JSON of the outputs.
//
// usage: node server.mjs model.onnx [--port 8080] [--timeout 1000] [--max-batch 8] [--max-queue 100]
//
// README.md has the statuses, and how to choose the numbers.
import { createServer } from 'node:http';
import { Server } from 'node:net';
import { parseArgs } from 'node:util';
import { createBatcher, InferenceError, InferenceSession, Tensor } from 'infernode';

const mostBytes = 64e6;

/** What is wrong with a request, by its status. */
class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The status of an answer that failed. */
export function statusOf(error) {
  if (error instanceof Refusal) return error.status;
  if (error.name === 'TimeoutError') return 504;
  if (error.name === 'AbortError') return 499;
  if (error.code === 'QUEUE_FULL' || error.code === 'OUT_OF_MEMORY' || error.code === 'DISPOSED') return 503;
  return error.code === 'INVALID_ARGUMENT' || error.code === 'SHAPE_MISMATCH' ? 400 : 500;
}

async function readJson(request) {
  const chunks = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > mostBytes) throw new Refusal(413, `more than ${mostBytes} bytes`);
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch (error) {
    throw new Refusal(400, `the body is no JSON: ${error.message}`);
  }
}

const arrays = {
  float32: Float32Array,
  float64: Float64Array,
  int8: Int8Array,
  uint8: Uint8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  bool: Uint8Array,
};

/** From which magnitude on a number rounds to infinity. */
const endOfFloats = { float16: 65520, float32: 2 ** 128 - 2 ** 103 };

/**
 * Tells whether a type holds a value of a client's JSON. Whole numbers that readers of JSON round are text:
 * "9007199254740993".
 */
function holderOf(type) {
  if (type === 'string') return (value) => typeof value === 'string';
  if (type === 'bool') return (value) => typeof value === 'boolean' || value === 0 || value === 1;
  const [, unsigned, bits] = /^(u?)int(\d+)$/.exec(type) ?? [];
  const floatEnd = endOfFloats[type] ?? Infinity;
  if (bits === undefined) return (value) => typeof value === 'number' && Math.abs(value) < floatEnd;
  const [least, end] = unsigned ? [0, 2 ** bits] : [-(2 ** (bits - 1)), 2 ** (bits - 1)];
  const cut = unsigned ? BigInt.asUintN : BigInt.asIntN;
  return (value) =>
    typeof value === 'string'
      ? bits === '64' && /^-?\d{1,20}$/.test(value) && cut(64, BigInt(value)) === BigInt(value)
      : Number.isSafeInteger(value) && value >= least && value < end;
}

/** What a client sent for an input, as an array that a tensor of its type takes. */
function dataOf(name, type, data) {
  if (!Array.isArray(data)) throw new Refusal(400, `input '${name}' needs 'data', an array of ${type}`);
  const holds = holderOf(type);
  const wrong = data.findIndex((value) => !holds(value));
  if (wrong >= 0) throw new Refusal(400, `data[${wrong}] of input '${name}' is no ${type}`);
  if (arrays[type] === undefined) return type.endsWith('int64') ? data.map(BigInt) : data;
  return arrays[type].from(data);
}

/** Tensors of what a client sent, by the types of the model's inputs. */
function feedsOf(session, body) {
  const names = session.inputNames.join(', ');
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new Refusal(400, `the body must be an object of the inputs: ${names}`);
  const stray = Object.keys(body).find((name) => !session.inputNames.includes(name));
  if (stray !== undefined) throw new Refusal(400, `the model has no input '${stray}'; it has ${names}`);
  const entries = session.inputMetadata.map(({ name, type }) => {
    const given = body[name];
    if (typeof given !== 'object' || given === null) throw new Refusal(400, `input '${name}' is missing`);
    const { dims, data } = given;
    if (!Array.isArray(dims)) throw new Refusal(400, `input '${name}' needs 'dims', an array of numbers`);
    const values = dataOf(name, type, data);
    try {
      return [name, new Tensor(type, values, dims)];
    } catch (error) {
      throw new Refusal(400, `input '${name}': ${error.message}`);
    }
  });
  return Object.fromEntries(entries);
}

/** Throws for what is no call of the model. */
function checkCall({ method, url }) {
  if (url.split('?')[0] !== '/run') throw new Refusal(404, 'there is POST /run alone');
  if (method !== 'POST') throw new Refusal(405, `POST /run, not ${method}`);
}

/** For what JSON has no number for: text. */
const numberOrText = (value) => {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  return typeof value === 'number' && !Number.isFinite(value) ? String(value) : value;
};

const jsonOf = (results) =>
  JSON.stringify(
    Object.fromEntries(
      Object.entries(results).map(([name, { type, dims, data }]) => [name, { type, dims, data: Array.from(data) }]),
    ),
    (_, value) => numberOrText(value),
  );

/**
 * A server that answers by `run(feeds, { signal, timeout })`. `log` hears the status of every request.
 * @param {{ session: import('infernode').InferenceSession, run: Function, timeout: number, log?: (status: number) => void }} parts
 */
export function makeServer({ session, run, timeout, log = () => undefined }) {
  return createServer(async function (request, response) {
    const gone = new AbortController();
    response.on('close', () => {
      if (!response.writableEnded) gone.abort();
    });
    let status = 200;
    let text;
    try {
      checkCall(request);
      const feeds = feedsOf(session, await readJson(request));
      text = jsonOf(await run(feeds, { signal: gone.signal, timeout }));
    } catch (error) {
      status = gone.signal.aborted ? 499 : statusOf(error);
      const code = error instanceof InferenceError ? error.code : undefined;
      text = JSON.stringify({ error: status === 500 ? 'internal error' : error.message, code });
      if (status === 500) console.error(error);
    }
    log(status);
    if (response.destroyed) return;
    if (status === 405) response.setHeader('allow', 'POST');
    // What is left of a body is not read; a server that ends keeps no connection.
    if (!request.complete || !this.listening) response.setHeader('connection', 'close');
    response.writeHead(status, { 'content-type': 'application/json' }).end(text);
  });
}

/**
 * What answers calls: runs of many at once where the model has rows for them, else each by itself. Either refuses a call
 * where `maxQueue` wait.
 */
export function runnerOf(session, { maxBatch, maxQueue }) {
  let batcher;
  try {
    batcher = createBatcher(session, { maxBatch, maxQueue });
  } catch (error) {
    if (error.code !== 'INVALID_ARGUMENT' || !(error instanceof InferenceError)) throw error; // wrong numbers
    console.log(error.message);
  }
  if (batcher !== undefined) return (feeds, options) => batcher.run(feeds, options);
  let pending = 0;
  return async (feeds, options) => {
    if (pending >= maxQueue) throw new Refusal(503, `${pending} calls wait already`);
    pending++;
    try {
      return await session.run(feeds, options);
    } finally {
      pending--;
    }
  };
}

/** Numbers of the command line. */
function numbersOf(values) {
  const entries = Object.entries(values).map(([name, text]) => {
    const number = Number(text);
    if (!Number.isInteger(number) || number < 0) throw new Error(`--${name} takes a whole number, not '${text}'`);
    return [name, number];
  });
  return Object.fromEntries(entries);
}

/** Ends a server when calls that were sent already are answered; http's own close() would cut what it has not read yet. */
function endWell(server, ended) {
  Server.prototype.close.call(server, ended);
  setTimeout(() => server.closeIdleConnections(), 1000);
}

if (process.argv[1]?.endsWith('server.mjs')) {
  const option = (value) => ({ type: 'string', default: String(value) });
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { port: option(8080), timeout: option(1000), 'max-batch': option(8), 'max-queue': option(100) },
  });
  if (positionals.length !== 1) {
    console.error('usage: node server.mjs model.onnx [--port 8080] [--timeout 1000] [--max-batch 8] [--max-queue 100]');
    process.exit(2);
  }
  const { port, timeout, 'max-batch': maxBatch, 'max-queue': maxQueue } = numbersOf(values);
  const session = await InferenceSession.create(positionals[0]);
  const server = makeServer({
    session,
    run: runnerOf(session, { maxBatch, maxQueue }),
    timeout,
    log: (status) => console.log(`${new Date().toISOString()} ${status}`),
  });
  server.listen(port, () => console.log(`listening on port ${server.address().port}`));
  process.once('SIGTERM', () => endWell(server, () => session.release()));
}
