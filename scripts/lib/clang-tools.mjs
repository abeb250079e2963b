// clang-format and clang-tidy of one version for everybody: another version formats differently.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { cachePath } from './cache.mjs';
import { fetchPackage, folderOnce } from './download.mjs';
import { say } from './project.mjs';

const major = 14;
const wheels = { 'clang-format': 'clang-format==14.0.6', 'clang-tidy': 'clang-tidy==14.0.6' };

const output = (program, args) => (spawnSync(program, args, { encoding: 'utf8' }).stdout ?? '').trim();
const isRight = (program) => new RegExp(`version ${major}\\.`).test(output(program, ['--version']));
const fromSystem = (name) => [`${name}-${major}`, name].find(isRight);

/** The program's path: the system's when it has the right version, otherwise from a Python wheel in the cache. */
export async function clangTool(name) {
  const system = fromSystem(name);
  if (system !== undefined) return system;
  const folder = await folderOnce(cachePath(`${name}-${major}`), (temporary) =>
    fetchPackage({ from: 'pip', spec: wheels[name] }, temporary),
  );
  const path = join(folder, name.replace('-', '_'), 'data', 'bin', process.platform === 'win32' ? `${name}.exe` : name);
  chmodSync(path, 0o755);
  if (!isRight(path))
    throw new Error(`${name} ${major} does not run on this system: install it with the system's packages`);
  return path;
}

/** The folder of headers that an installed Clang of this version has. */
const resourcesOfSystem = () =>
  [`clang-${major}`, 'clang']
    .map((name) => output(name, ['-print-resource-dir']))
    .find((path) => path.includes(`${major}.`));

/** The same of Debian's package, fetched and unpacked without installing it. */
async function resourcesOfPackage() {
  const folder = await folderOnce(cachePath(`clang-headers-${major}`), (temporary) =>
    fetchPackage({ from: 'apt', spec: `libclang-common-${major}-dev` }, temporary),
  );
  return join(folder, 'usr', 'lib', `llvm-${major}`, 'lib', 'clang', '14.0.6');
}

/**
 * What clang-tidy needs on its command line to find a compiler's own headers (stddef.h, immintrin.h), which the wheel lacks:
 * Clang's, or else those of the system's compiler, whose intrinsics Clang cannot read.
 * @returns {Promise<string[]>}
 */
export async function compilerHeaders() {
  if (fromSystem('clang-tidy') !== undefined) return [];
  const resources = resourcesOfSystem() ?? (await resourcesOfPackage().catch(() => undefined));
  if (resources !== undefined && existsSync(resources)) return [`--extra-arg=-resource-dir=${resources}`];
  const compilers = [process.env.CXX, 'c++', 'g++'].filter(Boolean);
  const folder = compilers.map((name) => output(name, ['-print-file-name=include'])).find((path) => existsSync(path));
  say(`no headers of Clang ${major} were found: files with intrinsics cannot be read by clang-tidy`);
  return folder === undefined ? [] : [`--extra-arg=-idirafter${folder}`];
}
