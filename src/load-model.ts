import type { InferenceSession as Common } from 'onnxruntime-common';

import { fromNative, InferenceError, typeError } from './errors.js';
import { explainLoad, warnStrayLocations } from './load-failure.js';
import { loadNative } from './load-native.js';
import { giveBack } from './model-arguments.js';
import type { ModelSource, NativeSession } from './native.js';
import { applyConcurrentRuns } from './options/concurrent-runs.js';
import { flushLog, forget, listen, listenToProgress, processListener } from './options/log-listeners.js';
import { bufferBytes, parseSessionOptions, type SessionOptions } from './options/session-options.js';
import { meantProvider, requestedNames, unknownProvider, unknownProviderHint, withoutMisspelt } from './providers.js';
import { completion, throwIfAborted } from './run/jobs.js';
import { NativeSessionHandler } from './session-handler.js';

/** The key of options that has all names of `executionProviders`, where none of them may make room for the next. */
export const requestedProviders = Symbol('requested providers');

/** Loads a model on an engine thread. */
export async function createHandler(
  source: ModelSource,
  options: Common.SessionOptions = {},
): Promise<NativeSessionHandler> {
  const { native, blobs, signal, preferredOutputLocation, onLog, onProgress } = parseSessionOptions(options);
  const listener = onLog ?? processListener();
  applyConcurrentRuns();
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
  const loaded = typeof source === 'string' ? 0 : source.byteLength;
  const total = typeof source === 'string' ? undefined : loaded;
  onProgress?.({ phase: 'prepare', loaded, total });
  let session: NativeSession;
  const logKey = listen(listener, native.logId);
  const progressKey = listenToProgress(
    onProgress &&
      ((phase, done, of) => {
        if (phase === 'build') onProgress({ phase, loaded: done, total: of });
        else onProgress({ phase: 'optimize', loaded, total });
      }),
  );
  try {
    session = await new Promise<NativeSession>((resolve, reject) => {
      const job = loadNative().createSession(source, { ...native, logKey, progressKey }, (error, result) => {
        settle?.(error, result);
      });
      for (const bytes of [source, ...native.externalData.map(({ data }) => data)]) giveBack(bytes);
      let settle: Parameters<Parameters<typeof completion<NativeSession>>[2]>[0] | undefined;
      completion<NativeSession>(job, signal, (callback) => {
        settle = callback;
      }).then(resolve, reject);
    });
  } catch (error) {
    forget(logKey);
    throw fromNative(explainLoad(error, source, native), signal?.aborted ? { cause: signal.reason } : undefined);
  } finally {
    forget(progressKey);
  }
  const { enableProfiling, logSeverityLevel } = native;
  const handler = new NativeSessionHandler(session, preferredOutputLocation, logKey, enableProfiling, logSeverityLevel);
  if (typeof preferredOutputLocation !== 'string') warnStrayLocations(handler, options);
  onProgress?.({ phase: 'ready', loaded, total });
  return handler;
}

/** Loads a model on the calling thread. */
export function createHandlerSync(source: ModelSource, given: SessionOptions = {}): NativeSessionHandler {
  const options = withoutMisspelt(given, requestedNames(given), (name) => meantProvider(name) !== undefined);
  const { native, blobs, signal, preferredOutputLocation, onLog } = parseSessionOptions(options);
  applyConcurrentRuns();
  throwIfAborted({ signal });
  const [blob] = blobs;
  if (blob !== undefined) {
    throw typeError(
      `Invalid session options: 'externalData[${blob.index}].data' is a Blob, which only 'create' can read.`,
    );
  }
  const logKey = listen(onLog ?? processListener(), native.logId);
  try {
    const session = loadNative().createSessionSync(source, { ...native, logKey });
    flushLog();
    const { enableProfiling, logSeverityLevel } = native;
    const handler = new NativeSessionHandler(
      session,
      preferredOutputLocation,
      logKey,
      enableProfiling,
      logSeverityLevel,
    );
    if (typeof preferredOutputLocation !== 'string') warnStrayLocations(handler, options);
    return handler;
  } catch (error) {
    flushLog();
    forget(logKey);
    throw fromNative(explainLoad(error, source, native));
  }
}
