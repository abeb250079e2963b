import { existsSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** Where the addon may be, written so that whoever collects a program's files finds it without running this. */
const beside = join(__dirname, 'infernode.node'); // of a bundle
const built = join(__dirname, '../build/Release/infernode.node');
const shipped: Readonly<Record<string, string>> = {
  'darwin-arm64': join(__dirname, '../prebuilds/darwin-arm64/infernode.node'),
  'darwin-x64': join(__dirname, '../prebuilds/darwin-x64/infernode.node'),
  'linux-arm64': join(__dirname, '../prebuilds/linux-arm64/infernode.node'),
  'linux-x64': join(__dirname, '../prebuilds/linux-x64/infernode.node'),
  'win32-x64': join(__dirname, '../prebuilds/win32-x64/infernode.node'),
};

/**
 * The addon where there is but one that it can be: what `npm run build` made, or else the only file among the binaries
 * for this platform, or else one that lies beside this file, which then is a bundle. `given`: a folder to look in
 * instead. node-gyp-build, which knows all places and names, takes longer to read and to search than the addon to load.
 */
export function onlyBinary(given?: string): string | undefined {
  if (process.env['PREBUILDS_ONLY']) return undefined;
  const [ours, theirs, builds] =
    given === undefined
      ? [built, shipped[`${process.platform}-${process.arch}`], join(__dirname, '../build')]
      : [
          resolve(given, 'build/Release/infernode.node'),
          resolve(given, `prebuilds/${process.platform}-${process.arch}/infernode.node`),
          resolve(given, 'build'),
        ];
  if (existsSync(ours)) return ours;
  if (!existsSync(builds) && theirs !== undefined && existsSync(theirs)) {
    return readdirSync(join(theirs, '..')).length === 1 ? theirs : undefined;
  }
  return given === undefined && existsSync(beside) ? beside : undefined;
}
