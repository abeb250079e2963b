import { existsSync } from 'node:fs';
import { join } from 'node:path';

import type * as Common from 'onnxruntime-common';

import { load } from '../load.js';

/*
 * What the bundle has for onnxruntime-common: the values that this package takes from it, out of the files that define
 * them. The package's index goes through a file more for each of those, and all that takes longer to load than what is used.
 * They are the same modules as the index hands out to others.
 */

type Used = Pick<
  typeof Common,
  | 'env'
  | 'InferenceSession'
  | 'registerBackend'
  | 'Tensor'
  | 'TRACE'
  | 'TRACE_EVENT_BEGIN'
  | 'TRACE_EVENT_END'
  | 'TRACE_FUNC_BEGIN'
  | 'TRACE_FUNC_END'
>;

const files = ['backend-impl.js', 'env-impl.js', 'tensor-impl.js', 'trace.js', 'inference-session-impl.js'];

function used(): Used {
  const name = 'onnxruntime-common';
  // The first folder that has it, as Node.js does, but for reading what the package exports: that takes a millisecond.
  const folder = load.resolve.paths(name)?.find((path) => existsSync(join(path, name))) ?? '';
  try {
    const modules = files.map((file) => load(join(folder, name, 'dist', 'cjs', file)) as object);
    const found: Partial<Used> = Object.assign({}, ...modules);
    const { env, InferenceSession, registerBackend, Tensor, TRACE_FUNC_END } = found;
    if (env && InferenceSession && registerBackend && Tensor && TRACE_FUNC_END) return found as Used;
  } catch {
    // a version that has other files
  }
  // eslint-disable-next-line @typescript-eslint/no-require-imports -- the form that collectors of dependencies look for
  return require('onnxruntime-common') as Used;
}

// Names of their own: in a bundle two of one name would give this package's classes a digit, which stacks show.
const {
  env,
  InferenceSession: CommonSession,
  registerBackend,
  Tensor: CommonTensor,
  TRACE,
  TRACE_EVENT_BEGIN,
  TRACE_EVENT_END,
  TRACE_FUNC_BEGIN,
  TRACE_FUNC_END,
} = used();

export {
  env,
  CommonSession as InferenceSession,
  registerBackend,
  CommonTensor as Tensor,
  TRACE,
  TRACE_EVENT_BEGIN,
  TRACE_EVENT_END,
  TRACE_FUNC_BEGIN,
  TRACE_FUNC_END,
};
