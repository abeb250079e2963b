import { existsSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';

import { InferenceError } from './errors.js';
import type { NativeAddon } from './native.js';

let addon: NativeAddon | undefined;

const load = createRequire(__filename);

/**
 * The addon where there is but one that it can be: what `npm run build` made, or else the only file among the binaries
 * for this platform. node-gyp-build, which knows all places and names, takes longer to read and to search than the
 * addon to load.
 */
function onlyBinary(root: string): string | undefined {
  if (process.env['PREBUILDS_ONLY']) return undefined;
  const name = 'infernode.node';
  const built = resolve(root, 'build', 'Release', name);
  if (existsSync(built)) return built;
  const folder = resolve(root, 'prebuilds', `${process.platform}-${process.arch}`);
  if (existsSync(join(root, 'build')) || !existsSync(folder)) return undefined;
  const files = readdirSync(folder);
  return files.length === 1 && files[0] === name ? join(folder, name) : undefined;
}

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
