// onnxruntime-node, the engine that answers and times are compared with. It lives in the cache, outside this package's
// dependencies, and its install script (which downloads GPU libraries) does not run.
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cachePath } from './cache.mjs';
import { folderOnce } from './download.mjs';
import { run } from './run.mjs';

export const peerVersion = '1.30.0';

/** The folder of the installed peer package; installs it on first use. */
export async function peerFolder() {
  const folder = await folderOnce(cachePath('peer', peerVersion), async (temporary) => {
    await writeFile(join(temporary, 'package.json'), JSON.stringify({ private: true }));
    const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-save'];
    await run('npm', ['install', ...quiet, `onnxruntime-node@${peerVersion}`], {
      cwd: temporary,
      env: { ONNXRUNTIME_NODE_INSTALL: 'skip' },
    });
  });
  return join(folder, 'node_modules', 'onnxruntime-node');
}

/** Whether onnxruntime adds pairs of products of uint8 and int8 in 16 bits here, which saturate: on x64 without VNNI. */
export const peerSaturates = (() => {
  try {
    return process.arch === 'x64' && !/\b(avx512_|avx_)vnni\b/.test(readFileSync('/proc/cpuinfo', 'latin1'));
  } catch {
    return false; // not Linux
  }
})();
