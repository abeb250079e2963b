import { fromNative } from './errors.js';
import { listed } from './hints.js';
import { loadNative } from './load-native.js';
import { nearestName } from './options/nearest-name.js';
import { logOf, warnOnce } from './options/option-names.js';
import { parseProviders } from './options/provider-options.js';
import type { SessionOptions } from './options/session-options.js';

/** Names of onnxruntime-web's: left to whoever registers a backend for them. */
export const browserOnly = new Set(['wasm', 'webgl', 'webnn']);

/** The test double: `executionProviders` takes it, no list has it. */
const double = 'null';

/** How the message of a name that nobody has ends. */
export const unknownProvider = 'backend not found.';

/** The provider that a name is meant for which nobody has: 'cuda' by 'CUDAExecutionProvider' and 'cdua'. */
export function meantProvider(name: string): string | undefined {
  const names = loadNative()
    .listSupportedBackends()
    .map((provider) => provider.name)
    .filter((provider) => provider !== double);
  if (browserOnly.has(name) || name === double || names.includes(name)) return undefined;
  const plain = name.replace(/ExecutionProvider$/i, '').toLowerCase();
  if (names.includes(plain)) return plain;
  return nearestName(
    plain,
    names.filter((provider) => provider[0] === plain[0]),
  );
}

/** Names of the providers that options ask for, in their order. */
export function requestedNames({ executionProviders }: SessionOptions): readonly string[] {
  return executionProviders === undefined ? [] : parseProviders(executionProviders).map(({ name }) => name);
}

/**
 * The options without providers that `isMisspelt`, where others remain to take over and may: a warning names what was
 * meant. `names`: the requestedNames of the options.
 */
export function withoutMisspelt(
  options: SessionOptions,
  names: readonly string[],
  isMisspelt: (name: string) => boolean,
): SessionOptions {
  const { executionProviders, providerFallback } = options;
  if (executionProviders === undefined || providerFallback === false) return options;
  const wrong = names.filter(isMisspelt);
  if (wrong.length === 0 || wrong.length === names.length) return options;
  for (const name of wrong) {
    const message = `'${name}' is no provider, the next in the list takes over. Did you mean '${meantProvider(name)}'?`;
    warnOnce(`executionProviders.${name}`, message, logOf(options));
  }
  return { ...options, executionProviders: executionProviders.filter((_, i) => !wrong.includes(names[i] as string)) };
}

/** About the first of `names` that is not a provider of this engine: what there is. */
export function unknownProviderHint(names: readonly string[]): string {
  const known = loadNative().listSupportedBackends();
  const unknown = names.find((name) => browserOnly.has(name) || known.every((provider) => provider.name !== name));
  if (unknown === undefined) return '';
  const meant = meantProvider(unknown);
  if (meant !== undefined) return ` Did you mean '${meant}'?`;
  const here = listSupportedBackends().map(({ name }) => name);
  const has = ` This build has ${listed(here)}.`;
  return browserOnly.has(unknown) ? ` '${unknown}' is a provider of onnxruntime-web.${has}` : has;
}

/** A device that a provider of this binary can use. */
export interface DeviceInfo {
  /** As `allocate` and `executionProviders` count it: 'cuda:0'. */
  readonly device: string;
  /** The model of the device, as its driver names it. */
  readonly name: string;
  /** All of its memory in bytes, in use or not. */
  readonly memoryBytes: number;
  /** What the device's processors know, '9.0'. */
  readonly computeCapability: string;
  /** Version of the interface that its driver has, '13.0'. */
  readonly driver: string;
}

/**
 * The accelerators that this binary's providers can use on this machine; empty where there are none. Starts the vendors'
 * drivers, which takes some 100 ms the first time, on another thread.
 */
export function listDevices(): Promise<DeviceInfo[]> {
  return new Promise((resolve, reject) => {
    loadNative().listDevices((error, devices) => {
      if (error !== undefined) reject(fromNative(error));
      else resolve(devices ?? []);
    });
  });
}

/** The providers that this binary has. */
export function listSupportedBackends(): { name: string; bundled: boolean }[] {
  return loadNative()
    .listSupportedBackends()
    .filter(({ name, bundled }) => bundled && name !== double);
}
