// Zig: Clang with the C and C++ libraries of every platform, from its wheel on PyPI.
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cachePath } from './cache.mjs';
import { fetchPackage, folderOnce } from './download.mjs';
import { say } from './project.mjs';

const version = '0.17.1';
const sha256 = 'ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54';

/** Programs of Zig by the name under which CMake and ccache know their like. */
const tools = { clang: 'cc', 'clang++': 'c++', ar: 'ar', ranlib: 'ranlib' };

/** The folder of Zig and of the libraries that it brings; fetched, where it is not in the cache. Linux on x64 only. */
export async function zigFolder() {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new Error(`all platforms are built on Linux on x64, this is ${process.platform} on ${process.arch}`);
  }
  const folder = cachePath(`zig-${version}`);
  if (!existsSync(folder)) say('fetching Zig (compiles for all platforms)');
  await folderOnce(folder, async (temporary) => {
    await fetchPackage({ from: 'pip', spec: `ziglang==${version}`, sha256 }, temporary);
    chmodSync(join(temporary, 'ziglang', 'zig'), 0o755);
  });
  return join(folder, 'ziglang');
}

/**
 * The folder of compilers and archivers for a target; scripts/cmake/zig.cmake takes them from there.
 * @param {string} target as Zig writes it, e.g. x86_64-linux-gnu.2.28
 */
export async function zigTools(target) {
  const zig = join(await zigFolder(), 'zig');
  const folder = cachePath(`zig-${version}`, 'tools', target);
  mkdirSync(folder, { recursive: true });
  const caches = cachePath('zig-cache');
  for (const [name, command] of Object.entries(tools)) {
    // Zig turns checks for undefined behaviour on where it thinks of a build as unoptimised.
    const args = name.startsWith('clang') ? ` -target ${target} -fno-sanitize=undefined` : '';
    // Zig precompiles a header only where it is not asked for an object, and CMake asks for one.
    const header =
      'case " $* " in *" c++-header "*) for arg do shift; [ "$arg" = -c ] || set -- "$@" "$arg"; done ;; esac';
    const text = [
      '#!/bin/sh',
      ...(name === 'clang++' ? [header] : []),
      `export ZIG_GLOBAL_CACHE_DIR='${caches}' ZIG_LOCAL_CACHE_DIR='${caches}'`,
      `exec '${zig}' ${command}${args} "$@"`,
      '',
    ].join('\n');
    const path = join(folder, name);
    if (!existsSync(path) || readFileSync(path, 'utf8') !== text) writeFileSync(path, text, { mode: 0o755 });
  }
  return folder;
}
