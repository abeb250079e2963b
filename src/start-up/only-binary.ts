import { existsSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';

/**
 * The addon where there is but one that it can be: what `npm run build` made, or else the only file among the binaries
 * for this platform. node-gyp-build, which knows all places and names, takes longer to read and to search than the
 * addon to load.
 */
export function onlyBinary(root: string): string | undefined {
  if (process.env['PREBUILDS_ONLY']) return undefined;
  const name = 'infernode.node';
  const built = resolve(root, 'build', 'Release', name);
  if (existsSync(built)) return built;
  const folder = resolve(root, 'prebuilds', `${process.platform}-${process.arch}`);
  if (existsSync(join(root, 'build')) || !existsSync(folder)) return undefined;
  const files = readdirSync(folder);
  return files.length === 1 && files[0] === name ? join(folder, name) : undefined;
}
