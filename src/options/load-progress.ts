/** How far a load is, as the option `onProgress` hears it. */
export interface LoadProgress {
  /** 'read': bytes of the model arrive; 'prepare': the engine has them and begins; 'ready': the session is made. */
  readonly phase: 'read' | 'prepare' | 'ready';
  /** Bytes that have arrived; 0 where the engine opens a file. */
  readonly loaded: number;
  /** Bytes of the whole model, where its source says so. */
  readonly total: number | undefined;
}
