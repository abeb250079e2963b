import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { load } from '../load.js';

/**
 * The folder of packages that has onnxruntime-common: the first, as Node.js finds it, but for reading what the package
 * exports, which takes a millisecond.
 */
export const commonFolder = load.resolve
  .paths('onnxruntime-common')
  ?.find((path) => existsSync(join(path, 'onnxruntime-common')));
