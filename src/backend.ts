import { env, registerBackend, type Backend, type InferenceSessionHandler } from 'onnxruntime-common';

import { createByTable } from './create-by-table.js';
import { InferenceError } from './errors.js';
import { createHandler, requestedProviders } from './load-model.js';
import { loadNative } from './load-native.js';
import { withOwnBytes } from './model-arguments.js';
import { explainLogLevel } from './options/log-level.js';
import type { SessionOptions } from './options/session-options.js';
import { browserOnly, meantProvider, requestedNames, unknownProviderHint, withoutMisspelt } from './providers.js';
import { onnxruntimeBeside } from './onnxruntime-beside.js';
import { version } from './version.js';

const backend: Backend = {
  init: () => Promise.resolve(),
  createInferenceSessionHandler: createHandler,
};

/** The names in the table that are this engine's, and whether it has them: another package may have been first. */
const entered = new Map<string, boolean>();

/** Below that of onnxruntime-node, which fails to load where a name has an owner of its own priority. */
const ours = 99;

/**
 * Enters the engine into onnxruntime-common's table under every provider name: those of this binary as defaults, the
 * others so that asking for them says why they cannot start. The table keeps a name's first owner. It is left to
 * onnxruntime-node where that is installed beside: each package then makes its own sessions, whichever loads first.
 */
export function registerBackends(): void {
  explainLogLevel();
  const shared = onnxruntimeBeside();
  for (const { name, bundled } of providerNames()) {
    if (!browserOnly.has(name)) entered.set(name, !shared && enter(name, bundled ? ours : -1));
  }
  const { versions } = env;
  if (Object.getOwnPropertyDescriptor(versions, 'node')?.configurable === false) return; // onnxruntime-node's
  Object.defineProperty(versions, 'node', { value: version, enumerable: true, configurable: true });
}

/** Where there is no addon, 'cpu' stands for all: asking for it says so. */
function providerNames(): readonly { name: string; bundled: boolean }[] {
  try {
    return loadNative().listSupportedBackends();
  } catch {
    return [{ name: 'cpu', bundled: true }];
  }
}

/** Whether the name is this engine's now. The table tells only by refusing a second owner of the same priority. */
function enter(name: string, priority: number): boolean {
  try {
    registerBackend(name, backend, priority);
  } catch {
    return false; // another copy of this package
  }
  try {
    registerBackend(name, { ...backend }, priority);
    return false;
  } catch {
    return true;
  }
}

/** Whether providers of this engine alone are asked for and the table would give one of them to another package. */
function isShadowed(requested: readonly string[]): boolean {
  const names = requested.length === 0 ? ['cpu'] : requested;
  return names.every((name) => entered.has(name)) && !names.every((name) => entered.get(name));
}

/**
 * Whether a name is nearly that of a provider, and nobody else's. It is this engine's from then on: the table tells a
 * name's owner by nothing but a refusal, and drops names without one with a line on the console.
 */
function isMisspelt(name: string): boolean {
  return !entered.has(name) && meantProvider(name) !== undefined && enter(name, -1);
}

/**
 * What makes and runs the session: goes through onnxruntime-common's table, where others may have registered backends.
 * Throws PROVIDER_UNAVAILABLE where no provider that was asked for is there, and what the load throws.
 */
export async function resolveHandler(
  source: string | Uint8Array,
  options: SessionOptions,
): Promise<InferenceSessionHandler> {
  const requested = requestedNames(options);
  const own = withOwnBytes(source, withoutMisspelt(options, requested, isMisspelt)); // the table, and Blobs, are read before the bytes are
  if (isShadowed(requested)) return createHandler(own.source, own.options);
  const given = options.providerFallback === false ? { ...own.options, [requestedProviders]: requested } : own.options;
  try {
    return await createByTable(own.source, given);
  } catch (error) {
    if (!(error instanceof Error) || error instanceof InferenceError) throw error;
    if (!error.message.startsWith('no available backend found')) throw error;
    const message = error.message + unknownProviderHint(requested);
    throw new InferenceError('PROVIDER_UNAVAILABLE', message, undefined, { cause: error });
  }
}
