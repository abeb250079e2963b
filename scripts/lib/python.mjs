// Python environments with packages from PyPI, made in the cache.
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { cachePath } from './cache.mjs';
import { folderOnce } from './download.mjs';
import { run } from './run.mjs';

const windows = process.platform === 'win32';

/** What onnxruntime's tools need: its quantizers onnx-ir, its optimizer sympy. */
export const onnxTools = ['onnx==1.23.2', 'onnx-ir==1.1.0', 'onnxruntime==1.32.0', 'sympy==1.14.0'];

/**
 * The interpreter of an environment that holds these packages; made on first use.
 * @param {string[]} packages as pip takes them, e.g. 'onnx==1.23.2'
 * @returns {Promise<string>}
 * @throws {Error} where there is no Python, or the packages cannot be had
 */
export async function pythonEnvironment(packages) {
  const wanted = [...packages].sort();
  const name = createHash('sha256').update(wanted.join('\n')).digest('hex').slice(0, 16);
  const interpreter = windows ? join('Scripts', 'python.exe') : join('bin', 'python3');
  const folder = await folderOnce(cachePath('python-environments', name), async (temporary) => {
    await run(windows ? 'python' : 'python3', ['-m', 'venv', '--copies', temporary]);
    const quiet = ['--quiet', '--disable-pip-version-check', '--only-binary=:all:'];
    await run(join(temporary, interpreter), ['-m', 'pip', 'install', ...quiet, ...wanted]);
  });
  return join(folder, interpreter);
}
