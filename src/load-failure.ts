import { isNativeError } from './errors.js';
import { nameHint, pathHint, shownModel } from './hints.js';
import type { ModelSource, NativeSessionOptions } from './native.js';
import { providerOptionKeys } from './options/generated.js';
import { nearestOption } from './options/nearest-name.js';
import { logOf, warnOnce } from './options/option-names.js';
import { unknownProvider, unknownProviderHint } from './providers.js';
import type { NativeSessionHandler } from './session-handler.js';

/** Warns of names in `preferredOutputLocation` that no output has. */
export function warnStrayLocations(
  { preferredOutputLocation, outputNames }: NativeSessionHandler,
  options: object,
): void {
  if (typeof preferredOutputLocation === 'string') return;
  for (const name of preferredOutputLocation.keys()) {
    if (outputNames.includes(name)) continue;
    const hint = nameHint(name, outputNames, "model's outputs");
    const message = `'preferredOutputLocation' has '${name}', which is no output and ignored.${hint}`;
    warnOnce(`preferredOutputLocation.${name}`, message, logOf(options));
  }
}

/** About an option that a provider does not have: the nearest that it has. */
function providerOptionHint(message: string): string {
  const [, provider = '', key = ''] = /^provider '(\w+)' has no option '(\w+)'$/.exec(message) ?? [];
  const nearest = nearestOption(key, providerOptionKeys[provider] ?? []);
  return nearest === undefined ? '' : `. Did you mean '${nearest}'?`;
}

/** A load's failure with what to do about it, where this layer knows that. */
export function explainLoad(error: unknown, source: ModelSource, options: NativeSessionOptions): unknown {
  if (!isNativeError(error)) return error;
  switch (error.code) {
    case 'ABORTED':
      return { ...error, message: 'The load was aborted.' };
    case 'IO': {
      if (typeof source !== 'string') return error;
      const shown = shownModel(source);
      const message = error.message.replaceAll(source, () => shown) + pathHint(source);
      return { ...error, message, ...(error.path === source && { path: shown }) };
    }
    case 'PROVIDER_UNAVAILABLE': {
      const hint = unknownProviderHint(options.providers.map(({ name }) => name));
      return error.message.endsWith(unknownProvider) ? { ...error, message: error.message + hint } : error;
    }
    case 'INVALID_ARGUMENT':
      if (typeof source === 'string' && source.includes('\0')) {
        return { ...error, message: `${error.message}.${pathHint(source)}` };
      }
      return { ...error, message: error.message + providerOptionHint(error.message) };
    default:
      return error;
  }
}
