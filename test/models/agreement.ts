import { EngineProcess } from '../../scripts/lib/engine-process.mjs';

/** A tensor in the plain form of scripts/lib/values.mjs. */
export interface Plain {
  type: string;
  dims: number[];
  data: ArrayLike<number> | ArrayLike<bigint> | string[];
}
export type Values = Record<string, Plain>;

const isFloat = (type: string) => type === 'float32' || type === 'float64';

/**
 * Largest difference over the largest magnitude expected. Infinite when types, dims, integers or strings differ, or when
 * only one of two numbers is finite.
 */
export function relativeError(actual: Plain | undefined, expected: Plain): number {
  if (actual?.type !== expected.type || String(actual.dims) !== String(expected.dims)) return Infinity;
  if (actual.data.length !== expected.data.length) return Infinity;
  const [got, want] = [actual.data as ArrayLike<number>, expected.data as ArrayLike<number>];
  let worst = 0;
  let largest = 0;
  for (let i = 0; i < want.length; i++) {
    if (Object.is(got[i], want[i])) {
      if (isFloat(expected.type) && Math.abs(want[i]!) > largest) largest = Math.abs(want[i]!);
      continue;
    }
    if (!isFloat(expected.type)) return Infinity;
    const difference = Math.abs(got[i]! - want[i]!);
    if (!(difference <= Number.MAX_VALUE)) return Infinity; // also NaN
    if (difference > worst) worst = difference;
    if (Math.abs(want[i]!) > largest) largest = Math.abs(want[i]!);
  }
  if (worst === 0) return 0;
  return largest === 0 ? worst : worst / largest;
}

/** The largest relative error over all outputs, and where it is. */
export function worstError(actual: Values, expected: Values): { error: number; output: string } {
  let worst = { error: Object.keys(expected).length ? 0 : Infinity, output: '' };
  for (const [output, value] of Object.entries(expected)) {
    const error = relativeError(actual[output], value);
    if (error > worst.error) worst = { error, output };
  }
  return worst;
}

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
