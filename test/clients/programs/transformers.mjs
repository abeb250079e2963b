// @huggingface/transformers computes with its built-in helper models.
import { interpolate_4d, matmul, slice, Tensor, topk } from '@huggingface/transformers';

const floats = (data, dims) => new Tensor('float32', Float32Array.from(data), dims);
const a = floats([0, 1, 2, 3, 4, 5], [2, 3]);
const [values, indices] = await topk(a, 2);
const enlarged = await interpolate_4d(floats([1, 2, 3, 4], [1, 1, 2, 2]), { size: [4, 4], mode: 'nearest' });

console.log(
  JSON.stringify({
    matmul: (await matmul(a, floats([0, 1, 2, 3, 4, 5], [3, 2]))).tolist(),
    slice: (await slice(a, [0], [1], [1])).tolist(),
    values: values.tolist(),
    indices: indices.tolist().map((row) => row.map(Number)),
    enlarged: enlarged.tolist()[0][0],
    squeezed: floats([1, 2], [1, 2]).squeeze_(0).dims,
  }),
);
