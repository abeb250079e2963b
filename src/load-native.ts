import { createRequire } from 'node:module';
import { dirname } from 'node:path';

import { fromNative, InferenceError, isNativeError } from './errors.js';
import type { NativeAddon } from './native.js';
import { onlyBinary } from './start-up/only-binary.js';

let addon: NativeAddon | undefined;

const load = createRequire(__filename);

/**
 * The addon of this platform, loaded once: build/Release (made by `npm run build`) or prebuilds/. The environment
 * variable INFERNODE_PREBUILD names another folder that has one of these.
 */
export function loadNative(): NativeAddon {
  if (addon !== undefined) return addon;
  const root = process.env['INFERNODE_PREBUILD'] ?? dirname(__dirname); // the parent of src/ and of dist/
  try {
    const binary = onlyBinary(root);
    addon = (
      binary === undefined ? (load('node-gyp-build') as (root: string) => unknown)(root) : load(binary)
    ) as NativeAddon;
  } catch (cause) {
    if (isNativeError(cause)) throw fromNative(cause); // it loads, and cannot begin
    const platform = `${process.platform}-${process.arch}`;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new InferenceError(
      'IO',
      `infernode has no binary that loads on ${platform} (Node ${process.versions.node}). Build one with \`npm run build\` in a ` +
        `checkout of its repository, and set INFERNODE_PREBUILD to that folder. ${reason}`,
      { path: root },
      { cause },
    );
  }
  return addon;
}
