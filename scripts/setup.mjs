// Makes a bare clone ready to build: checks Node.js and the C++ toolchain, fetches Wuffs and the header of the native
// tests, and installs the npm packages. Nothing is done twice. docs/dependencies.md says what each is for.
//
// usage: node scripts/setup.mjs [--cuda]
//   --cuda   also fetches nvcc (100 MB), with which the CUDA provider's kernels are built
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { cachePath } from './lib/cache.mjs';
import { fetchPackage, folderOnce } from './lib/download.mjs';
import { must } from './lib/live.mjs';
import { ensureNvcc } from './lib/nvcc.mjs';
import { at, isMain, runMain, say } from './lib/project.mjs';
import { ensureToolchain } from './lib/toolchain.mjs';

const header = join('doctest', 'doctest.h');
const systemFolders = ['/usr/include', '/usr/local/include', '/opt/homebrew/include'];

/** Whether the header of the native tests is where CMake looks for it. */
export const hasDoctest = () =>
  [...systemFolders, cachePath('doctest', 'usr', 'include')].some((folder) => existsSync(join(folder, header)));

async function ensureDoctest() {
  if (hasDoctest()) return;
  say("fetching doctest (the native tests' framework)");
  await folderOnce(cachePath('doctest'), (folder) => fetchPackage({ from: 'apt', spec: 'doctest-dev' }, folder)).catch(
    (error) => {
      const command = process.platform === 'darwin' ? 'brew install doctest' : 'sudo apt-get install -y doctest-dev';
      throw new Error(`doctest is needed for the native tests: run  ${command}  (${error.message})`);
    },
  );
}

/** Wuffs' one C file, from the source archive of its Python binding; scripts/cmake/tools.cmake looks for it here. */
async function ensureWuffs() {
  const spec = 'pywuffs==2.0.1';
  const sha256 = '5a9fd8a5026badf9e133940cee87ad58bd5cb4cd5264b9c46b607cb34e2bb9ab';
  const folder = cachePath('pywuffs-2.0.1');
  if (existsSync(folder)) return;
  say('fetching Wuffs (decodes PNG, JPEG and Deflate)');
  await folderOnce(folder, (temporary) => fetchPackage({ from: 'sdist', spec, sha256 }, temporary));
}

async function installPackages() {
  // npm writes the first of these last, so it is the newer one after a complete installation of this lock file.
  const [installed, lock] = [at('node_modules', '.package-lock.json'), at('package-lock.json')];
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs) return;
  say('installing npm packages');
  await must('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--no-update-notifier']);
}

/** @param {{ tests?: boolean, cuda?: boolean }} [what] what else: for the native tests, for the CUDA provider's kernels */
export async function setup({ tests = false, cuda = false } = {}) {
  const [major] = process.versions.node.split('.').map(Number);
  if (major < 20) throw new Error(`Node.js 20 or newer is needed, this is ${process.version}`);
  await ensureToolchain();
  await ensureWuffs();
  if (tests) await ensureDoctest();
  if (cuda) say(`nvcc: ${await ensureNvcc()}`);
  await installPackages();
}

if (isMain(import.meta.url)) runMain(() => setup({ tests: true, cuda: process.argv.includes('--cuda') }));
