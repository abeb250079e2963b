import { InferenceError, typeError } from './errors.js';
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
  const path = model instanceof URL ? shownUrl(model) : isResponse(model) && model.url ? shownUrl(new URL(model.url)) : undefined; // prettier-ignore
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
  if (isBlob(model)) return { stream: model.stream() as unknown as AsyncIterable<Uint8Array>, total: model.size };
  return { stream: model as AsyncIterable<Uint8Array>, total: undefined };
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
  let abort: (error: unknown) => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => (abort = reject));
  aborted.catch(() => undefined);
  const forget = signal && onAbort(signal, () => abort(signal.reason));
  let over = false;
  try {
    for (;;) {
      signal?.throwIfAborted();
      const next = await Promise.race([chunks.next(), aborted]);
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

/** Bytes as they arrive: in one place where their number is known. */
class Chunks {
  length = 0;
  readonly #parts: Uint8Array[] = [];
  #whole: Uint8Array | undefined;

  constructor(private readonly total: number | undefined) {
    if (total === undefined) return;
    try {
      this.#whole = new Uint8Array(total);
    } catch {
      throw new InferenceError('OUT_OF_MEMORY', `A model of ${total} bytes does not fit into memory.`);
    }
  }

  /** How many of how many have arrived, for a message. */
  arrived(): string {
    return this.total === undefined ? '' : ` (${this.length} of ${this.total} bytes had arrived)`;
  }

  add(chunk: Uint8Array): void {
    if (this.#whole !== undefined && this.length + chunk.length > this.#whole.length) {
      this.#parts.push(this.#whole.subarray(0, this.length)); // more than was said
      this.#whole = undefined;
    }
    if (this.#whole === undefined) this.#parts.push(chunk.slice());
    else this.#whole.set(chunk, this.length);
    this.length += chunk.length;
  }

  bytes(): Uint8Array {
    return this.#whole?.subarray(0, this.length) ?? Buffer.concat(this.#parts);
  }
}

/** Without a name and a password, which messages are not to have. */
function shownUrl({ protocol, host, pathname }: URL): string {
  return protocol === 'data:' ? 'a data: URL' : `${protocol}//${host}${pathname}`;
}
