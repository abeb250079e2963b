import { EngineProcess } from '../../scripts/lib/engine-process.mjs';

/** A tensor in the plain form of scripts/lib/values.mjs. */
export interface Plain {
  type: string;
  dims: number[];
  data: ArrayLike<number> | ArrayLike<bigint> | string[];
}
export type Values = Record<string, Plain>;

export { relativeDistance, relativeError, worstError } from '../../scripts/lib/agreement.mjs';

/** Runs `body` with a fresh engine process, which ends with it. */
export async function withEngine<T>(
  engine: string,
  env: Record<string, string>,
  body: (process: EngineProcess) => Promise<T>,
): Promise<T> {
  const process = await EngineProcess.start(engine, env);
  try {
    return await body(process);
  } finally {
    await process.stop();
  }
}
