import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { commonFolder } from './start-up/common-folder.js';

/**
 * Whether onnxruntime-node itself is installed beside the onnxruntime-common that this package uses: then the two share
 * that package's table. An override that puts this package into its place is not it.
 */
export function onnxruntimeBeside(): boolean {
  const path = join(commonFolder ?? '', 'onnxruntime-node', 'package.json');
  if (commonFolder === undefined || !existsSync(path)) return false;
  try {
    return (JSON.parse(readFileSync(path, 'utf8')) as { name?: unknown }).name === 'onnxruntime-node';
  } catch {
    return false;
  }
}
