// The protobuf wire format, read: enough of it for the messages of a conformance case.

/** Calls `visit(field, value)` for each field: a bigint for varints, bytes (a view) for the other three wire types. */
export function eachField(bytes, visit) {
  let at = 0;
  const fail = (what) => {
    throw new Error(`protobuf: ${what} at byte ${at} of ${bytes.length}`);
  };
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      if (at >= bytes.length) fail('truncated varint');
      const byte = bytes[at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return BigInt.asUintN(64, value);
    }
    return fail('endless varint');
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    const wire = tag & 7;
    if (wire === 0) {
      visit(tag >>> 3, varint());
      continue;
    }
    const length = wire === 2 ? Number(varint()) : wire === 1 ? 8 : wire === 5 ? 4 : fail(`wire type ${wire}`);
    if (at + length > bytes.length) fail('field past the end');
    visit(tag >>> 3, bytes.subarray(at, at + length));
    at += length;
  }
}

/** All values of a repeated varint field, packed or not, as signed 64-bit integers. */
export function pushVarints(list, value) {
  if (typeof value === 'bigint') {
    list.push(BigInt.asIntN(64, value));
    return;
  }
  let current = 0n;
  let shift = 0n;
  for (const byte of value) {
    current |= BigInt(byte & 127) << shift;
    shift += 7n;
    if (byte < 128) {
      list.push(BigInt.asIntN(64, current));
      current = shift = 0n;
    }
  }
}

export const text = (bytes) => new TextDecoder().decode(bytes);
