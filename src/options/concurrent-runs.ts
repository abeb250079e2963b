import { env } from 'onnxruntime-common';

import { loadNative } from '../load-native.js';
import { envKeys } from './generated.js';
import { warnMisspelt } from './option-names.js';
import { OptionReader } from './option-reader.js';

/** Of onnxruntime-common's `env`. */
const othersKeys = ['versions', 'wasm', 'webgl', 'webgpu', 'trace', 'debug'];

/**
 * Tells the process's engine what `env.maxConcurrentRuns` says, where it says something, and warns of settings that are
 * misspelt. Throws what the table says.
 */
export function applyConcurrentRuns(): void {
  warnMisspelt(Object.keys(env), envKeys, othersKeys, 'env');
  const reader = new OptionReader(env, 'env');
  if (reader.has('maxConcurrentRuns')) loadNative().setConcurrentRuns(reader.integer('maxConcurrentRuns', 0, 1024));
}
