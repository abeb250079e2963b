import type { InferenceSession as Common } from 'onnxruntime-common';

import type { NativeRunOptions } from './native.js';
import { runOptionKeys, sessionOptionKeys } from './option-keys.js';
import { warnMisspelt } from './option-names.js';
import { OptionReader } from './option-reader.js';

/** Options of one run: those of onnxruntime-node, of which `terminate` and `extra` work, and more. */
export interface RunOptions extends Common.RunOptions {
  /** Ends the run at its next node or loop step; the promise rejects with code ABORTED and the reason as cause. */
  signal?: AbortSignal;
  /** Milliseconds after which the run is aborted; also works for runSync. */
  timeout?: number;
}

export interface ParsedRunOptions {
  native: NativeRunOptions | undefined;
  terminate: boolean;
  signal: AbortSignal | undefined;
}

const nothing: ParsedRunOptions = { native: undefined, terminate: false, signal: undefined };

/** Checks and reads every option once. Unknown keys are ignored: clients pass their session options here. */
export function parseRunOptions(options: object | undefined): ParsedRunOptions {
  if (options === undefined) return nothing;
  const keys = Object.keys(options);
  if (keys.length === 0) return nothing;
  warnMisspelt(keys, runOptionKeys, sessionOptionKeys, 'RunOptions');
  const reader = new OptionReader(options, 'run options');
  const native: NativeRunOptions = {
    tag: reader.string('tag', ''),
    logSeverityLevel: reader.integer('logSeverityLevel', -1, 4),
    timeout: reader.integer('timeout', 0),
    config: reader.config(),
  };
  return { native, terminate: reader.get('terminate') === true, signal: reader.signal() };
}
