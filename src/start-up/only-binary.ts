import { existsSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';

import { load } from '../load.js';

/** Where the addon may be, written so that whoever collects a program's files finds it without running this. */
const beside = join(__dirname, 'infernode.node'); // of a bundle
const built = join(__dirname, '../build/Release/infernode.node');
const shipped: Readonly<Record<string, string>> = {
  'darwin-arm64': join(__dirname, '../prebuilds/darwin-arm64/infernode.node'),
  'darwin-x64': join(__dirname, '../prebuilds/darwin-x64/infernode.node'),
  'linux-arm64': join(__dirname, '../prebuilds/linux-arm64/infernode.node'),
  'linux-x64': join(__dirname, '../prebuilds/linux-x64/infernode.node'),
  'win32-arm64': join(__dirname, '../prebuilds/win32-arm64/infernode.node'),
  'win32-x64': join(__dirname, '../prebuilds/win32-x64/infernode.node'),
};
/** Of the packages @infernode/<platform>, which package managers put beside this one. */
const packaged: Readonly<Record<string, string>> = {
  'darwin-arm64': join(__dirname, '../../@infernode/darwin-arm64/infernode.node'),
  'darwin-x64': join(__dirname, '../../@infernode/darwin-x64/infernode.node'),
  'linux-arm64': join(__dirname, '../../@infernode/linux-arm64/infernode.node'),
  'linux-arm64-musl': join(__dirname, '../../@infernode/linux-arm64-musl/infernode.node'),
  'linux-x64': join(__dirname, '../../@infernode/linux-x64/infernode.node'),
  'linux-x64-musl': join(__dirname, '../../@infernode/linux-x64-musl/infernode.node'),
  'win32-arm64': join(__dirname, '../../@infernode/win32-arm64/infernode.node'),
  'win32-x64': join(__dirname, '../../@infernode/win32-x64/infernode.node'),
};

/** Platforms that have a package of their own. */
export const packagedPlatforms: readonly string[] = Object.keys(packaged);

/** Whether the C library is musl. */
export function hasMusl(): boolean {
  if (process.platform !== 'linux') return false;
  const { header } = process.report.getReport() as { header?: object };
  return header !== undefined && !('glibcVersionRuntime' in header);
}

const here = (): string => `${process.platform}-${process.arch}`;

/** The package's file, where it lies beside this package or `require` finds it (nested, or by Yarn's Plug'n'Play). */
function inPackage(name: string): string | undefined {
  try {
    return packaged[name] === undefined ? undefined : load.resolve(`@infernode/${name}/infernode.node`);
  } catch {
    return undefined;
  }
}

/** Installed packages with a binary for this processor: by their platform's name, which C library's it may tell. */
export function packagedBinaries(): Map<string, string> {
  const names = process.platform === 'linux' ? [here(), `${here()}-musl`] : [here()];
  const find = (look: (name: string) => string | undefined) =>
    names.flatMap((name): (readonly [string, string])[] => {
      const path = look(name);
      return path !== undefined && existsSync(path) ? [[name, path]] : [];
    });
  const siblings = find((name) => packaged[name]);
  return new Map(siblings.length > 0 ? siblings : find(inPackage));
}

/** The addon that a package of this platform holds. Older package managers install those of both C libraries. */
function packagedBinary(): string | undefined {
  const there = packagedBinaries();
  if (there.size < 2) return [...there.values()][0];
  return there.get(hasMusl() ? `${here()}-musl` : here());
}

/**
 * The addon where there is but one that it can be: what `npm run build` made, or else the only file among the binaries
 * for this platform, or else one that lies beside this file, which then is a bundle, or else that of the platform's own
 * package. `given`: a folder to look in instead. node-gyp-build, which knows all places and names, takes longer to read
 * and to search than the addon to load.
 */
export function onlyBinary(given?: string): string | undefined {
  if (process.env['PREBUILDS_ONLY']) return undefined;
  const [ours, theirs, builds] =
    given === undefined
      ? [built, shipped[here()], join(__dirname, '../build')]
      : [
          resolve(given, 'build/Release/infernode.node'),
          resolve(given, `prebuilds/${here()}/infernode.node`),
          resolve(given, 'build'),
        ];
  if (existsSync(ours)) return ours;
  if (!existsSync(builds) && theirs !== undefined && existsSync(theirs)) {
    return readdirSync(join(theirs, '..')).length === 1 ? theirs : undefined;
  }
  if (given !== undefined) return undefined;
  return existsSync(beside) ? beside : packagedBinary();
}
