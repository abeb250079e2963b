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

/** y = x * w with w of `size` x `size` floats in the file, which a kernel packs. */
export function product(size: number): Uint8Array {
  return model({
    nodes: [node('MatMul', ['x', 'w'], ['y'])],
    inputs: [f32('x', ['n', size])],
    outputs: [f32('y', ['n', size])],
    initializers: [{ name: 'w', type: 'float32', dims: [size, size], data: new Float32Array(size * size).fill(1) }],
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

/** y, the indices of x that are not 0, whose number nobody knows before the run, and z, the same value. */
export function indices(): Uint8Array {
  const found = (name: string): TensorInfo => ({ name, type: 'int64', shape: [1, 'found'] });
  return model({
    nodes: [node('NonZero', ['x'], ['y']), node('Identity', ['y'], ['z'])],
    inputs: [f32('x', ['n'])],
    outputs: [found('y'), found('z')],
  });
}

/** y = -x, `n` times over, and z, which gathers the values that were negated: as long as the data says. */
export function rounds(gathers = true): Uint8Array {
  const scalar = (name: string, type: TensorInfo['type'] = 'int64'): TensorInfo => ({ name, type, shape: [] });
  const body = {
    nodes: [node('Identity', ['c'], ['d']), node('Neg', ['v'], ['u']), node('Exp', ['v'], ['w'])],
    inputs: [scalar('i'), scalar('c', 'bool'), f32('v', ['k'])],
    outputs: [scalar('d', 'bool'), f32('u', ['k']), f32('w', ['k'])].slice(0, gathers ? 3 : 2),
  };
  return model({
    nodes: [node('Loop', ['n', 'go', 'x'], gathers ? ['y', 'z'] : ['y'], { attributes: { body } })],
    inputs: [scalar('n'), f32('x', ['k'])],
    outputs: [f32('y', ['k']), f32('z', ['rounds', 'k'])].slice(0, gathers ? 2 : 1),
    initializers: [{ name: 'go', type: 'bool', dims: [], data: Uint8Array.of(1) }],
  });
}
