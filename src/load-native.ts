import { dirname, resolve } from 'node:path';

import { fromNative, InferenceError, isNativeError } from './errors.js';
import { load } from './load.js';
import type { NativeAddon } from './native.js';
import { missingBinary } from './missing-binary.js';
import { onlyBinary } from './start-up/only-binary.js';

let addon: NativeAddon | undefined;

/**
 * The addon of this platform, loaded once: build/Release (made by `npm run build`), prebuilds/, or a file beside a
 * bundle. The environment variable INFERNODE_PREBUILD names another folder that has one of these, INFERNODE_BINARY the file
 * itself. Throws NO_BINARY.
 */
export function loadNative(): NativeAddon {
  if (addon !== undefined) return addon;
  const { INFERNODE_BINARY: file, INFERNODE_PREBUILD: given } = process.env;
  const root = given ?? dirname(__dirname); // the parent of src/ and of dist/
  try {
    const binary = file ? resolve(file) : onlyBinary(given);
    addon = (
      binary === undefined ? (load('node-gyp-build') as (root: string) => unknown)(root) : load(binary)
    ) as NativeAddon;
  } catch (cause) {
    if (isNativeError(cause)) throw fromNative(cause); // it loads, and cannot begin
    throw new InferenceError('NO_BINARY', missingBinary(root, cause), { path: root }, { cause });
  }
  return addon;
}
