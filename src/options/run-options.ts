import type { InferenceSession as Common } from 'onnxruntime-common';

import type { NativeRunOptions } from '../native.js';
import { readSimpleRunOptions, runOptionKeys, sessionOptionKeys, type OwnRunOptions } from './generated.js';
import { warnMisspelt } from './option-names.js';
import { OptionReader } from './option-reader.js';

/** Options of one run: those of onnxruntime-node, of which `terminate` and `extra` work, and more. */
export interface RunOptions extends Common.RunOptions, OwnRunOptions {}

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
  const native: NativeRunOptions = { ...readSimpleRunOptions(reader), config: reader.config() };
  return { native, terminate: reader.get('terminate') === true, signal: reader.signal() };
}
