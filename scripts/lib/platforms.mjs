// The platforms that a release has a binary for, each in a package of its own.
import { at } from './project.mjs';

/**
 * name: the package's, behind `@infernode/`; os, cpu, libc: by which npm chooses; zig: the target that it is built for,
 * with the oldest system that it runs on.
 */
export const platforms = [
  { name: 'linux-x64', os: 'linux', cpu: 'x64', libc: 'glibc', zig: 'x86_64-linux-gnu.2.28' },
  { name: 'linux-x64-musl', os: 'linux', cpu: 'x64', libc: 'musl', zig: 'x86_64-linux-musl' },
  { name: 'linux-arm64', os: 'linux', cpu: 'arm64', libc: 'glibc', zig: 'aarch64-linux-gnu.2.28' },
  { name: 'linux-arm64-musl', os: 'linux', cpu: 'arm64', libc: 'musl', zig: 'aarch64-linux-musl' },
  { name: 'win32-x64', os: 'win32', cpu: 'x64', zig: 'x86_64-windows-gnu' },
  { name: 'win32-arm64', os: 'win32', cpu: 'arm64', zig: 'aarch64-windows-gnu' },
  { name: 'darwin-arm64', os: 'darwin', cpu: 'arm64', zig: 'aarch64-macos.12.0' },
  { name: 'darwin-x64', os: 'darwin', cpu: 'x64', zig: 'x86_64-macos.12.0' },
];

/** Where a platform's binary is built. */
export const workFolder = ({ name }) => at('build', 'prebuild', name);

/** The binary that `npm run prebuild` leaves, as prebuildify and node-gyp-build name it. */
export const prebuilt = ({ name, os, cpu }) =>
  at('build', 'prebuild', name, 'prebuilds', `${os}-${cpu}`, 'infernode.node');

/**
 * The platforms that arguments name: `--platform <name>...`, or `--all`.
 * @param {string[]} args
 * @throws {Error} where a name is none
 */
export function chosenPlatforms(args) {
  if (args.includes('--all')) return platforms;
  const names = args
    .filter((name) => name !== '--platform')
    .flatMap((name) => name.replace(/^--platform=/, '').split(','));
  return names.map((name) => {
    const platform = platforms.find((one) => one.name === name);
    if (platform === undefined) {
      throw new Error(
        `'${name}' is no platform: take --all, or --platform with ${platforms.map((one) => one.name).join(', ')}`,
      );
    }
    return platform;
  });
}
