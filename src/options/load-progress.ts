import { throwApart } from '../errors.js';
import type { OptionReader } from './option-reader.js';

/** How far a load is, as the option `onProgress` hears it. */
export interface LoadProgress {
  /**
   * 'read': bytes of the model arrive; 'prepare': the engine has them, or a file's name, and begins; 'optimize': it has
   * read the model; 'build': kernels are made and weights packed; 'ready': the session is made.
   */
  readonly phase: 'read' | 'prepare' | 'optimize' | 'build' | 'ready';
  /** Bytes that have arrived, 0 where the engine opens a file; in 'build' nodes of the graph that are ready to run. */
  readonly loaded: number;
  /** Bytes of the whole model, where its source says so; in 'build' nodes of the graph. */
  readonly total: number | undefined;
}

/** The option `onProgress`; what it throws ends no load. */
export function progressListener(reader: OptionReader): ((progress: LoadProgress) => void) | undefined {
  const listener = reader.callback<(progress: LoadProgress) => void>('onProgress');
  if (listener === undefined) return undefined;
  return (progress) => {
    try {
      listener(progress);
    } catch (error) {
      throwApart(error);
    }
  };
}
