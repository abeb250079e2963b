// Values in the plain form that travels between processes and that answers are compared in:
// a tensor is { type, dims, data }, a sequence an array, a map a Map, an absent optional null.

/** Element types that onnxruntime-common's Tensor can be constructed with. */
const constructible = new Set(
  'float32 float64 float16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool string'.split(' '),
);

/** Typed array that holds each type's elements; the types JavaScript lacks are held as raw bits. */
export const arrayOf = {
  float32: Float32Array,
  float64: Float64Array,
  float16: Uint16Array,
  bfloat16: Uint16Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  uint64: BigUint64Array,
  bool: Uint8Array,
};

export const isTensor = (value) => value !== null && typeof value === 'object' && 'dims' in value && 'type' in value;

/** The engine's form of a plain value. */
export function toEngine(ort, value) {
  if (value === null || value === undefined) return null;
  if (Array.isArray(value)) return value.map((item) => toEngine(ort, item));
  if (!isTensor(value)) return value;
  const { type, dims, data } = value;
  if (constructible.has(type)) return new ort.Tensor(type, data, dims);
  return { type, dims, data, location: 'cpu', size: dims.reduce((a, b) => a * b, 1) };
}

export const toFeeds = (ort, feeds) =>
  Object.fromEntries(Object.entries(feeds).map(([name, value]) => [name, toEngine(ort, value)]));

/** The plain form of an engine's value; half-precision data as its bits on every Node version. */
export function fromEngine(value) {
  if (value === null || value === undefined) return null;
  if (Array.isArray(value)) return value.map(fromEngine);
  if (!isTensor(value)) return value;
  const { type, dims } = value;
  let { data } = value;
  if (type === 'float16' && !(data instanceof Uint16Array))
    data = new Uint16Array(data.buffer, data.byteOffset, data.length);
  return { type, dims: [...dims], data };
}
