import { env, registerBackend, type Backend, type InferenceSession as Common } from 'onnxruntime-common';

import { fromNative, InferenceError, isNativeError, typeError } from './errors.js';
import { listed, pathHint, shownPath } from './hints.js';
import { loadNative } from './load-native.js';
import type { ModelSource, NativeSession, NativeSessionOptions } from './native.js';
import { completion, NativeSessionHandler, throwIfAborted } from './session-handler.js';
import { bufferBytes, parseSessionOptions } from './session-options.js';
import { version } from './version.js';

/** Names of onnxruntime-web's: left to whoever registers a backend for them. */
const browserOnly = new Set(['wasm', 'webgl', 'webnn']);

/** The key of options that has all names of `executionProviders`, where none of them may make room for the next. */
export const requestedProviders = Symbol('requested providers');

const backend: Backend = {
  init: () => Promise.resolve(),
  createInferenceSessionHandler: createHandler,
};

/** Loads a model on an engine thread. */
export async function createHandler(
  source: ModelSource,
  options: Common.SessionOptions = {},
): Promise<NativeSessionHandler> {
  const { native, blobs, signal, preferredOutputLocation } = parseSessionOptions(options);
  const requested = (options as { [requestedProviders]?: readonly string[] })[requestedProviders] ?? [];
  // onnxruntime-common drops names that nobody registered.
  const dropped = requested.find((name) => native.providers.every((provider) => provider.name !== name));
  if (dropped !== undefined) {
    const message = `no available backend found. ERR: [${dropped}] ${unknownProvider}${unknownProviderHint([dropped])}`;
    throw new InferenceError('PROVIDER_UNAVAILABLE', message);
  }
  throwIfAborted({ signal });
  for (const { index, blob } of blobs) {
    const entry = native.externalData[index];
    if (entry !== undefined) entry.data = bufferBytes(await blob.arrayBuffer(), `externalData[${index}].data`);
  }
  throwIfAborted({ signal });
  try {
    const session = await new Promise<NativeSession>((resolve, reject) => {
      const job = loadNative().createSession(source, native, (error, result) => {
        settle?.(error, result);
      });
      let settle: Parameters<Parameters<typeof completion<NativeSession>>[2]>[0] | undefined;
      completion<NativeSession>(job, signal, (callback) => {
        settle = callback;
      }).then(resolve, reject);
    });
    return new NativeSessionHandler(session, preferredOutputLocation);
  } catch (error) {
    throw fromNative(explain(error, source, native), signal?.aborted ? signal.reason : undefined);
  }
}

/** Loads a model on the calling thread. */
export function createHandlerSync(source: ModelSource, options: Common.SessionOptions = {}): NativeSessionHandler {
  const { native, blobs, signal, preferredOutputLocation } = parseSessionOptions(options);
  throwIfAborted({ signal });
  const [blob] = blobs;
  if (blob !== undefined) {
    throw typeError(
      `Invalid session options: 'externalData[${blob.index}].data' is a Blob, which only 'create' can read.`,
    );
  }
  try {
    return new NativeSessionHandler(loadNative().createSessionSync(source, native), preferredOutputLocation);
  } catch (error) {
    throw fromNative(explain(error, source, native));
  }
}

/** A load's failure with what to do about it, where this layer knows that. */
function explain(error: unknown, source: ModelSource, options: NativeSessionOptions): unknown {
  if (!isNativeError(error)) return error;
  switch (error.code) {
    case 'ABORTED':
      return { ...error, message: 'The load was aborted.' };
    case 'IO': {
      if (typeof source !== 'string') return error;
      const shown = shownPath(source);
      const message = error.message.replaceAll(source, () => shown) + pathHint(source);
      return { ...error, message, ...(error.path === source && { path: shown }) };
    }
    case 'PROVIDER_UNAVAILABLE': {
      const hint = unknownProviderHint(options.providers.map(({ name }) => name));
      return error.message.endsWith(unknownProvider) ? { ...error, message: error.message + hint } : error;
    }
    default:
      return error;
  }
}

/** How the message of a name that nobody has ends. */
const unknownProvider = 'backend not found.';

/** About the first of `names` that is not a provider of this engine: what there is. */
export function unknownProviderHint(names: readonly string[]): string {
  const known = loadNative().listSupportedBackends();
  const unknown = names.find((name) => browserOnly.has(name) || known.every((provider) => provider.name !== name));
  if (unknown === undefined) return '';
  const same = known.find(({ name }) => name === unknown.replace(/ExecutionProvider$/, '').toLowerCase());
  if (same !== undefined && !browserOnly.has(unknown)) return ` Did you mean '${same.name}'?`;
  const here = listSupportedBackends().map(({ name }) => name);
  const has = ` This build has ${listed(here.filter((name) => name !== 'null'))}.`;
  return browserOnly.has(unknown) ? ` '${unknown}' is a provider of onnxruntime-web.${has}` : has;
}

/** The providers that this binary has. */
export function listSupportedBackends(): { name: string; bundled: boolean }[] {
  return loadNative()
    .listSupportedBackends()
    .filter(({ bundled }) => bundled);
}

/** The names in the table that are this engine's, and whether it has them: another package may have been first. */
const entered = new Map<string, boolean>();

/**
 * Enters the engine into onnxruntime-common's table under every provider name: those of this binary as defaults, the
 * others so that asking for them says why they cannot start. A name keeps its first owner, where that is onnxruntime-node
 * or another copy of this package.
 */
export function registerBackends(): void {
  for (const { name, bundled } of loadNative().listSupportedBackends()) {
    if (!browserOnly.has(name)) entered.set(name, enter(name, bundled ? 100 : -1));
  }
  Object.defineProperty(env.versions, 'node', { value: version, enumerable: true, configurable: true });
}

function enter(name: string, priority: number): boolean {
  try {
    registerBackend(name, backend, priority);
    return true;
  } catch {
    return false;
  }
}

/** Whether providers of this engine alone are asked for and the table would give one of them to another package. */
export function isShadowed(requested: readonly string[]): boolean {
  const names = requested.length === 0 ? ['cpu'] : requested;
  return names.every((name) => entered.has(name)) && !names.every((name) => entered.get(name));
}
