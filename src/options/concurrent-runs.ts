import { env } from 'onnxruntime-common';

import { loadNative } from '../load-native.js';
import { OptionReader } from './option-reader.js';

/** Tells the process's engine what `env.maxConcurrentRuns` says, where it says something. Throws what the table says. */
export function applyConcurrentRuns(): void {
  const reader = new OptionReader(env, 'env');
  if (reader.has('maxConcurrentRuns')) loadNative().setConcurrentRuns(reader.integer('maxConcurrentRuns', 0, 1024));
}
