import { join } from 'node:path';

import type * as Common from 'onnxruntime-common';

import { load } from '../load.js';
import { commonFolder } from './common-folder.js';

/*
 * What the bundle has for onnxruntime-common: the values that this package takes from it, out of the files that define
 * them. The package's index goes through a file more for each of those, and all that takes longer to load than what is used.
 * They are the same modules as the index hands out to others.
 */

type Used = Pick<
  typeof Common,
  | 'env'
  | 'registerBackend'
  | 'Tensor'
  | 'TRACE'
  | 'TRACE_EVENT_BEGIN'
  | 'TRACE_EVENT_END'
  | 'TRACE_FUNC_BEGIN'
  | 'TRACE_FUNC_END'
> & { resolveBackendAndExecutionProviders?: ResolveBackend };

type ResolveBackend = (
  options: Common.InferenceSession.SessionOptions,
) => Promise<readonly [Common.Backend, Common.InferenceSession.SessionOptions]>;

const files = ['backend-impl.js', 'env-impl.js', 'tensor-impl.js', 'trace.js'];

function used(): Used {
  const folder = join(commonFolder ?? '', 'onnxruntime-common', 'dist', 'cjs');
  try {
    const modules = files.map((file) => load(join(folder, file)) as object);
    const found: Partial<Used> = Object.assign({}, ...modules);
    const { env, registerBackend, Tensor, TRACE_FUNC_END } = found;
    if (env && registerBackend && Tensor && TRACE_FUNC_END) return found as Used;
  } catch {
    // a version that has other files
  }
  return index();
}

function index(): typeof Common {
  // eslint-disable-next-line @typescript-eslint/no-require-imports -- the form that collectors of dependencies look for
  return require('onnxruntime-common') as typeof Common;
}

const parts = used();

// Names of their own: in a bundle two of one name would give this package's classes a digit, which stacks show.
const { env, registerBackend, Tensor: CommonTensor, TRACE, TRACE_EVENT_BEGIN, TRACE_EVENT_END, TRACE_FUNC_BEGIN, TRACE_FUNC_END } = parts; // prettier-ignore

export {
  env,
  registerBackend,
  CommonTensor as Tensor,
  TRACE,
  TRACE_EVENT_BEGIN,
  TRACE_EVENT_END,
  TRACE_FUNC_BEGIN,
  TRACE_FUNC_END,
};

/**
 * In the bundle, that of ../create-by-table.ts: onnxruntime-common's own session is read only where its table does not
 * answer without it.
 */
export async function createByTable(
  source: string | Uint8Array,
  options: Common.InferenceSession.SessionOptions,
): Promise<Common.InferenceSessionHandler> {
  const { resolveBackendAndExecutionProviders: resolve } = parts;
  if (resolve !== undefined) {
    const [backend, accepted] = await resolve(options);
    return backend.createInferenceSessionHandler(source, accepted);
  }
  const { InferenceSession } = index();
  const create = InferenceSession.create as (model: typeof source, given: typeof options) => Promise<unknown>;
  return ((await create(source, options)) as { handler: Common.InferenceSessionHandler }).handler;
}
