import { InferenceError, typeError } from './errors.js';
import { giveBack, ownBytes } from './model-arguments.js';
import { isBlob, isResponse, type ModelStream } from './model-source.js';
import { describe, isTypedArray, bytesOf } from './tensor/tensor-data.js';
import { progressListener } from './options/load-progress.js';
import { OptionReader } from './options/option-reader.js';
import { onAbort } from './run/jobs.js';

/**
 * The model's bytes. A URL is fetched. Rejects with IO where that fails or the stream does, with ABORTED by the option
 * `signal`, and with TypeError for a stream of anything but bytes.
 */
export async function readModel(model: ModelStream, options: object): Promise<Uint8Array> {
  const reader = new OptionReader(options, 'session options');
  const signal = reader.signal();
  const report = progressListener(reader);
  const path = addressOf(model);
  let chunks: Chunks | undefined;
  try {
    signal?.throwIfAborted();
    const { stream, total } = await open(model, signal);
    chunks = new Chunks(total);
    for await (const chunk of untilAbort(stream, signal)) {
      if (!isTypedArray(chunk)) throw typeError(`The model's stream must give bytes, got ${describe(chunk)}.`);
      chunks.add(bytesOf(chunk));
      report?.({ phase: 'read', loaded: chunks.length, total });
    }
    return chunks.bytes();
  } catch (error) {
    if (signal?.aborted) {
      throw new InferenceError('ABORTED', 'The load was aborted.', undefined, { cause: signal.reason });
    }
    if (error instanceof InferenceError || (error instanceof Error && 'code' in error && error.code === 'INVALID_ARGUMENT')) throw error; // prettier-ignore
    const from = path === undefined ? 'its stream' : path;
    const message = `Load model from ${from} failed: ${reasonOf(error)}${chunks?.arrived() ?? ''}`;
    throw new InferenceError('IO', message, path === undefined ? {} : { path }, { cause: error });
  }
}

/** The address that a model comes from, for a message. */
function addressOf(model: ModelStream): string | undefined {
  if (model instanceof URL) return shownUrl(model);
  return isResponse(model) && model.url ? shownUrl(new URL(model.url)) : undefined;
}

/** `load` of bytes that came from a model's address: an error about them names it. */
export async function namingAddress<T>(model: ModelStream, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    const path = addressOf(model);
    if (path === undefined || !(error instanceof InferenceError) || error.code !== 'INVALID_MODEL') throw error;
    throw new InferenceError(
      error.code,
      `${error.message} It came from ${path}.`,
      { ...error, path },
      { cause: error },
    );
  }
}

interface Source {
  stream: AsyncIterable<Uint8Array>;
  total: number | undefined;
}

async function open(model: ModelStream, signal: AbortSignal | undefined): Promise<Source> {
  if (model instanceof URL) return open(await fetched(model, signal), signal);
  if (isResponse(model)) {
    if (!model.ok) throw new Error(`the server answered ${model.status} ${model.statusText}`.trimEnd() + '.');
    const length = model.headers.has('content-encoding') ? null : model.headers.get('content-length');
    const total = length === null || !/^\d+$/.test(length) ? undefined : Number(length);
    return { stream: (model.body ?? new Blob([]).stream()) as unknown as AsyncIterable<Uint8Array>, total };
  }
  if (isBlob(model)) return { stream: partsOf(model), total: model.size };
  return { stream: model as AsyncIterable<Uint8Array>, total: undefined };
}

/** By parts that are let go of: those of `stream()` would wait for V8 to collect them. */
async function* partsOf(blob: Blob): AsyncGenerator<Uint8Array> {
  const size = 2 ** 22;
  for (let begin = 0; begin < blob.size; begin += size) {
    const part = ownBytes(new Uint8Array(await blob.slice(begin, begin + size).arrayBuffer()));
    yield part;
    letGo(part);
  }
}

/** A name and a password go into a header: `fetch` refuses URLs that have them. */
function fetched(url: URL, signal: AbortSignal | undefined): Promise<Response> {
  const bare = new URL(url);
  bare.username = bare.password = '';
  const headers = new Headers();
  if (url.username !== '' || url.password !== '') {
    const user = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
    headers.set('authorization', `Basic ${Buffer.from(user).toString('base64')}`);
  }
  return fetch(bare, { signal: signal ?? null, headers });
}

/** The same chunks. Throws the signal's reason when it aborts, though the next may never come. */
async function* untilAbort<T>(stream: AsyncIterable<T>, signal: AbortSignal | undefined): AsyncGenerator<T> {
  const chunks = stream[Symbol.asyncIterator]();
  let abort: (error: unknown) => void = () => undefined; // of the chunk that is waited for
  const forget = signal && onAbort(signal, () => abort(signal.reason));
  let over = false;
  try {
    for (;;) {
      signal?.throwIfAborted();
      const next = await new Promise<IteratorResult<T>>((resolve, reject) => {
        abort = reject;
        Promise.resolve(chunks.next()).then(resolve, reject);
      });
      if ((over = next.done === true)) return;
      yield next.value as T;
    }
  } finally {
    forget?.();
    if (!over) void (async () => chunks.return?.())().catch(() => undefined); // it may wait for ever, too
  }
}

/** What went wrong; `fetch` says it in the cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, code } = (error.cause instanceof Error ? error.cause : {}) as { message?: string; code?: string };
  const cause = message === undefined || message === '' ? code : message;
  return cause === undefined ? error.message : `${error.message}: ${cause}`;
}

/** Blocks begin as small as that, and become no larger than that: what is not yet filled takes no memory. */
const [leastBlock, mostBlock] = [2 ** 20, 2 ** 26];

/** Bytes as they arrive: in one place where their number is known, else in blocks that are let go of as they are joined. */
class Chunks {
  length = 0;
  readonly #blocks: Uint8Array<ArrayBuffer>[] = [];
  /** Of the last block. */
  #room = 0;

  constructor(private readonly total: number | undefined) {
    if (total !== undefined && total > 0) this.#grow(total);
  }

  /** How many of how many have arrived, for a message. */
  arrived(): string {
    return this.total === undefined ? '' : ` (${this.length} of ${this.total} bytes had arrived)`;
  }

  add(chunk: Uint8Array): void {
    for (let rest = chunk; rest.length > 0;) {
      if (this.#room === 0) this.#grow(Math.min(Math.max(this.length, rest.length, leastBlock), mostBlock));
      const part = rest.subarray(0, this.#room);
      const block = this.#blocks.at(-1) as Uint8Array;
      block.set(part, block.length - this.#room);
      this.#room -= part.length;
      this.length += part.length;
      rest = rest.subarray(part.length);
    }
  }

  /** All of them, which are the load's own. */
  bytes(): Uint8Array {
    const [only] = this.#blocks;
    if (only !== undefined && this.#blocks.length === 1) return ownBytes(only).subarray(0, this.length);
    const whole = allocate(this.length);
    let length = 0;
    for (const block of this.#blocks.splice(0)) {
      whole.set(block.subarray(0, this.length - length), length);
      length += block.length;
      letGo(ownBytes(block));
    }
    return ownBytes(whole);
  }

  #grow(size: number): void {
    this.#blocks.push(allocate(size));
    this.#room = size;
  }
}

function letGo(bytes: Uint8Array): void {
  try {
    giveBack(bytes);
  } catch {
    // there is no binary: V8 frees it in time
  }
}

function allocate(bytes: number): Uint8Array<ArrayBuffer> {
  try {
    return new Uint8Array(bytes);
  } catch {
    throw new InferenceError('OUT_OF_MEMORY', `A model of ${bytes} bytes does not fit into memory.`);
  }
}

/** Without a name and a password, which messages are not to have. */
function shownUrl({ protocol, host, pathname }: URL): string {
  return protocol === 'data:' ? 'a data: URL' : `${protocol}//${host}${pathname}`;
}
