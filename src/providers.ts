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
  const has = ` This build has ${listed(here.filter((name) => name !== 'null'))}.`;
  return browserOnly.has(unknown) ? ` '${unknown}' is a provider of onnxruntime-web.${has}` : has;
}

/** The providers that this binary has. */
export function listSupportedBackends(): { name: string; bundled: boolean }[] {
  return loadNative()
    .listSupportedBackends()
    .filter(({ bundled }) => bundled);
}
