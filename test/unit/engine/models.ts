import { model, node, type TensorInfo } from '../../fixtures/onnx-writer.js';

const f32 = (name: string, shape: TensorInfo['shape']): TensorInfo => ({ name, type: 'float32', shape });

/** y = x after `count` products with itself, so that a run of large x takes long; between products it can be ended. */
export function slow(count = 40): Uint8Array {
  const nodes = Array.from({ length: count }, (_, i) =>
    node('MatMul', [i === 0 ? 'x' : `v${i}`, 'x'], [i === count - 1 ? 'y' : `v${i + 1}`], { name: `product ${i}` }),
  );
  return model({ nodes, inputs: [f32('x', ['n', 'n'])], outputs: [f32('y', ['n', 'n'])] });
}

/** y = x + w with w of `size` floats in the file. */
export function heavy(size: number): Uint8Array {
  return model({
    nodes: [node('Add', ['x', 'w'], ['y'])],
    inputs: [f32('x', [1])],
    outputs: [f32('y', [size])],
    initializers: [{ name: 'w', type: 'float32', dims: [size], data: new Float32Array(size).fill(1) }],
  });
}

/** y = 2 * x, whatever the shape. */
export function double(): Uint8Array {
  return model({ nodes: [node('Add', ['x', 'x'], ['y'])], inputs: [f32('x', ['n'])], outputs: [f32('y', ['n'])] });
}

/** y = x and a second output that is the same value. */
export function alias(): Uint8Array {
  return model({
    nodes: [node('Identity', ['x'], ['y']), node('Identity', ['x'], ['z'])],
    inputs: [f32('x', ['n'])],
    outputs: [f32('y', ['n']), f32('z', ['n'])],
  });
}
