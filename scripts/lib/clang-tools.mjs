// clang-format and clang-tidy of one version for everybody: another version formats differently.
import { spawnSync } from 'node:child_process';
import { cachePath } from './cache.mjs';
import { fetchPackage, folderOnce } from './download.mjs';
import { join } from 'node:path';

const major = 14;
const wheels = { 'clang-format': 'clang-format==14.0.6', 'clang-tidy': 'clang-tidy==14.0.6' };

const isRight = (program) => {
  const { stdout } = spawnSync(program, ['--version'], { encoding: 'utf8' });
  return new RegExp(`version ${major}\\.`).test(stdout ?? '');
};

/** The program's path: the system's when it has the right version, otherwise from a Python wheel in the cache. */
export async function clangTool(name) {
  for (const program of [`${name}-${major}`, name]) if (isRight(program)) return program;
  const folder = await folderOnce(cachePath(`${name}-${major}`), (temporary) =>
    fetchPackage({ from: 'pip', spec: wheels[name] }, temporary),
  );
  const path = join(folder, name.replace('-', '_'), 'data', 'bin', process.platform === 'win32' ? `${name}.exe` : name);
  const { chmodSync } = await import('node:fs');
  chmodSync(path, 0o755);
  if (!isRight(path))
    throw new Error(`${name} ${major} does not run on this system: install it with the system's packages`);
  return path;
}
