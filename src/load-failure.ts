import { isNativeError, type NativeError } from './errors.js';
import { loadMemoryHint, nameHint, pathHint, sentence, shownModel } from './hints.js';
import type { ModelSource, NativeSessionOptions } from './native.js';
import { providerOptionKeys } from './options/generated.js';
import { nearestOption, nearestValue } from './options/nearest-name.js';
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

/** About a value that is neither of the two names that are taken: the one that is meant. */
function valueHint({ expected = '', actual = '' }: NativeError): string {
  const names = /^'?(\w{2,})'? or '?(\w{2,})'?$/.exec(expected)?.slice(1) ?? [];
  const meant = nearestValue(actual, names);
  return meant === undefined ? '' : `. Did you mean '${meant}'?`;
}

/** A load's failure with what to do about it, where this layer knows that. */
export function explainLoad(error: unknown, source: ModelSource, options: NativeSessionOptions): unknown {
  if (!isNativeError(error)) return error;
  switch (error.code) {
    case 'ABORTED':
      return { ...error, message: 'The load was aborted.' };
    case 'OUT_OF_MEMORY':
      return { ...error, message: sentence(error.message) + loadMemoryHint(typeof source !== 'string') };
    case 'IO': {
      const plain = error.message.replaceAll(/(\.\d+){2}\.tmp\b/g, ''); // the file beside, which is renamed
      if (typeof source !== 'string') return { ...error, message: plain };
      const shown = shownModel(source);
      const message = plain.replaceAll(source, () => shown) + pathHint(source);
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
      return { ...error, message: error.message + providerOptionHint(error.message) + valueHint(error) };
    default:
      return error;
  }
}
