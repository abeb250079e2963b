import { expectFailure, ort } from '../../fixtures/engine.js';
import { model, node, type ModelSpec, type TensorInfo } from '../../fixtures/onnx-writer.js';

/** Options of a session that says nothing. */
export const quiet = { logSeverityLevel: 4 };

export const info = (
  name: string,
  type: TensorInfo['type'] = 'float32',
  shape: TensorInfo['shape'] = [2],
): TensorInfo => ({ name, type, shape });
export const x = info('x');
export const y = info('y');

export const create = (bytes: Uint8Array, options: object = {}) =>
  ort.InferenceSession.create(bytes, { ...quiet, ...options });

/** A model that no session is made of. */
export const refuse = (spec: ModelSpec | Uint8Array, expected: Parameters<typeof expectFailure>[1]) =>
  expectFailure(() => create(spec instanceof Uint8Array ? spec : model(spec)), expected);

/** y = x + w, whose eight bytes lie in the file `location`. */
export const external = (location: string): Uint8Array =>
  model({
    nodes: [node('Add', ['x', 'w'], ['y'])],
    inputs: [x],
    outputs: [y],
    initializers: [
      { name: 'w', type: 'float32', dims: [2], data: Float32Array.of(0), external: { location, offset: 0, length: 8 } },
    ],
  });
