import type { InferenceSession as Common } from 'onnxruntime-common';

import type { NativeRunOptions } from '../native.js';
import { readSimpleRunOptions, runOptionKeys, sessionOptionKeys, type OwnRunOptions } from './generated.js';
import { listenerOf } from './log-listeners.js';
import { warnMisspelt } from './option-names.js';
import { OptionReader } from './option-reader.js';

/** Options of one run: those of onnxruntime-node, of which `terminate` and `extra` work, and more. */
export interface RunOptions extends Common.RunOptions, OwnRunOptions {}

export interface ParsedRunOptions {
  native: NativeRunOptions | undefined;
  terminate: boolean;
  signal: AbortSignal | undefined;
  /** The run's own of its log. */
  level: number | undefined;
}

const nothing: ParsedRunOptions = { native: undefined, terminate: false, signal: undefined, level: undefined };

/**
 * Checks and reads every option once. Unknown keys are ignored: clients pass their session options here. `logKey`: of the
 * session, whose listener hears of misspelt ones.
 */
export function parseRunOptions(options: object | undefined, logKey = 0): ParsedRunOptions {
  if (options === undefined) return nothing;
  const keys = Object.keys(options);
  if (keys.length === 0) return nothing;
  const reader = new OptionReader(options, 'run options');
  const native: NativeRunOptions = { ...readSimpleRunOptions(reader), config: reader.config() };
  const level = native.logSeverityLevel < 0 ? undefined : native.logSeverityLevel;
  warnMisspelt(keys, runOptionKeys, sessionOptionKeys, 'RunOptions', { hear: listenerOf(logKey), level });
  return { native, terminate: reader.get('terminate') === true, signal: reader.signal(), level };
}
