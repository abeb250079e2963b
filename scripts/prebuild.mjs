// Builds the binaries that packages hold, for all platforms on this one machine: prebuildify, cmake-js and Zig.
//
// usage: npm run prebuild -- --all | --platform <name>...
//
// A platform's binary is left in build/prebuild/<name>/prebuilds. Nothing that is up to date is compiled again. npm runs a
// script of this name before `npm run build`, too: without arguments it does nothing.
import { chmodSync, copyFileSync, existsSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cmakeBuild, mustNode } from './lib/live.mjs';
import { chosenPlatforms, platforms, prebuilt, workFolder } from './lib/platforms.mjs';
import { at, bin, fingerprint, isMain, root, runMain, say, unlessDone } from './lib/project.mjs';
import { zigTools } from './lib/zig.mjs';
import { setup } from './setup.mjs';

/** What prebuildify starts in node-gyp's place: cmake-js configures, CMake builds. */
async function buildFor(platform) {
  const folder = join(workFolder(platform), 'build');
  const options = {
    CMAKE_TOOLCHAIN_FILE: at('scripts', 'cmake', 'zig.cmake'),
    INFERNODE_ZIG_TOOLS: await zigTools(platform.zig),
    INFERNODE_ZIG_TARGET: platform.zig,
    INFERNODE_WERROR: 'ON',
  };
  const args = ['configure', '--log-level', 'warn', '--directory', root, '--out', folder, '--arch', platform.cpu];
  args.push(...Object.entries(options).map(([name, value]) => `--CD${name}=${value}`));
  if (!existsSync(join(folder, 'CMakeCache.txt'))) rmSync(join(folder, '.configured'), { force: true });
  const print = fingerprint([at('package-lock.json'), options.CMAKE_TOOLCHAIN_FILE], args, process.version);
  await unlessDone(join(folder, '.configured'), print, async () => {
    rmSync(join(folder, 'CMakeCache.txt'), { force: true });
    await mustNode(bin('cmake-js/bin/cmake-js'), args);
  });
  await cmakeBuild(folder, ['--target', 'infernode_addon']);
}

async function prebuild(platform) {
  say(`building for ${platform.name}`);
  const folder = workFolder(platform);
  mkdirSync(folder, { recursive: true });
  copyFileSync(at('package.json'), join(folder, 'package.json')); // where prebuildify reads the addon's name
  const stand = join(folder, 'node-gyp');
  writeFileSync(
    stand,
    `#!/bin/sh\nexec '${process.execPath}' '${at('scripts', 'prebuild.mjs')}' --build ${platform.name}\n`,
  );
  chmodSync(stand, 0o755);
  rmSync(prebuilt(platform), { force: true });
  const args = [
    '--napi',
    `--node-gyp=${stand}`,
    `--platform=${platform.os}`,
    `--arch=${platform.cpu}`,
    '--cwd',
    folder,
  ];
  await mustNode(bin('prebuildify/bin.js'), args);
  const megabytes = (statSync(prebuilt(platform)).size / 1e6).toFixed(1);
  say(`${platform.name}: ${megabytes} MB`);
}

if (isMain(import.meta.url)) {
  const args = process.argv.slice(2);
  runMain(async () => {
    if (args[0] === '--build') return buildFor(platforms.find(({ name }) => name === args[1]));
    if (args.length === 0) return;
    const chosen = chosenPlatforms(args);
    await setup();
    const failed = [];
    for (const platform of chosen)
      await prebuild(platform).catch((error) => failed.push(`${platform.name}: ${error.message}`));
    if (failed.length > 0) throw new Error(`not built: ${failed.join('; ')}`);
  });
}
