import { fromNative } from './errors.js';
import { listed } from './hints.js';
import { loadNative } from './load-native.js';

/** Names of onnxruntime-web's: left to whoever registers a backend for them. */
export const browserOnly = new Set(['wasm', 'webgl', 'webnn']);

/** How the message of a name that nobody has ends. */
export const unknownProvider = 'backend not found.';

/** About the first of `names` that is not a provider of this engine: what there is. */
export function unknownProviderHint(names: readonly string[]): string {
  const known = loadNative().listSupportedBackends();
  const unknown = names.find((name) => browserOnly.has(name) || known.every((provider) => provider.name !== name));
  if (unknown === undefined) return '';
  const same = known.find(({ name }) => name === unknown.replace(/ExecutionProvider$/, '').toLowerCase());
  if (same !== undefined && !browserOnly.has(unknown)) return ` Did you mean '${same.name}'?`;
  const here = listSupportedBackends().map(({ name }) => name);
  const has = ` This build has ${listed(here)}.`;
  return browserOnly.has(unknown) ? ` '${unknown}' is a provider of onnxruntime-web.${has}` : has;
}

/** A device that a provider of this binary can use. */
export interface DeviceInfo {
  /** As `allocate` and `executionProviders` count it: 'cuda:0'. */
  readonly device: string;
  readonly name: string;
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

/** The test double: `executionProviders` takes it, no list has it. */
const double = 'null';

/** The providers that this binary has. */
export function listSupportedBackends(): { name: string; bundled: boolean }[] {
  return loadNative()
    .listSupportedBackends()
    .filter(({ name, bundled }) => bundled && name !== double);
}
