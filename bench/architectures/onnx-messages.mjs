// Protocol buffers: the few messages of ONNX that the models made here need.

function varint(value) {
  const bytes = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) + 0x80);
  bytes.push(rest);
  return Buffer.from(bytes);
}
export const integer = (field, value) => Buffer.concat([varint(field * 8), varint(value)]);
export const bytes = (field, content) => {
  const data = Buffer.from(content);
  return Buffer.concat([varint(field * 8 + 2), varint(data.length), data]);
};
export const message = (field, ...parts) => bytes(field, Buffer.concat(parts));

const attributeTypes = { int: 2, floats: 6, ints: 7, strings: 8 };
export const attribute = (name, type, content) =>
  message(5, bytes(1, name), integer(20, attributeTypes[type]), content);
export const ints = (name, values) => attribute(name, 'ints', bytes(8, Buffer.concat(values.map(varint))));
export const floats = (name, values) =>
  attribute(name, 'floats', bytes(7, Buffer.from(Float32Array.from(values).buffer)));
export const strings = (name, values) =>
  attribute(name, 'strings', Buffer.concat(values.map((value) => bytes(9, value))));

/** A float32 input or output; a dim is a number or a symbol's name. */
export const value = (field, name, dims) =>
  message(
    field,
    bytes(1, name),
    message(
      2,
      message(
        1,
        integer(1, 1),
        message(2, ...dims.map((dim) => message(1, typeof dim === 'string' ? bytes(2, dim) : integer(1, dim)))),
      ),
    ),
  );
export const operatorSet = (domain, version) => message(8, bytes(1, domain), integer(2, version));
