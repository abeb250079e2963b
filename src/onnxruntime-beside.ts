import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { load } from './load.js';

/**
 * Whether onnxruntime-node itself is installed beside the onnxruntime-common that this package uses: then the two share
 * that package's table. An override that puts this package into its place is not it.
 */
export function onnxruntimeBeside(): boolean {
  const common = 'onnxruntime-common';
  const folder = load.resolve.paths(common)?.find((path) => existsSync(join(path, common)));
  if (folder === undefined) return false;
  try {
    const manifest = readFileSync(join(folder, 'onnxruntime-node', 'package.json'), 'utf8');
    return (JSON.parse(manifest) as { name?: unknown }).name === 'onnxruntime-node';
  } catch {
    return false;
  }
}
