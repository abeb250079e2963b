// Frames between the benchmark and an engine that is no JavaScript: one line of JSON, then the bytes of its `tensors`,
// which the line lists as { name, type, dims, bytes } in the order of their bytes.
import { arrayOf } from '../../scripts/lib/values.mjs';

/**
 * A frame's chunks of bytes.
 * @param {object} message what JSON can hold
 * @param {Record<string, { type: string, dims: number[], data: ArrayBufferView }>} [values]
 * @returns {Uint8Array[]}
 */
export function encodeFrame(message, values = {}) {
  const tensors = Object.entries(values).map(([name, { type, dims, data }]) => {
    if (!ArrayBuffer.isView(data)) throw new Error(`${name}: values of type ${type} do not travel to this engine`);
    return { name, type, dims, bytes: data.byteLength };
  });
  const bytes = Object.values(values).map(({ data }) => new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  return [Buffer.from(`${JSON.stringify({ ...message, tensors })}\n`), ...bytes];
}

function decodeTensors(tensors, bytes) {
  let at = 0;
  return Object.fromEntries(
    tensors.map(({ name, type, dims, bytes: length }) => {
      if (!arrayOf[type]) throw new Error(`${name}: no array holds values of type ${type}`);
      const copy = new Uint8Array(bytes.subarray(at, (at += length))); // arrays of wider elements begin at their multiples
      return [name, { type, dims, data: new arrayOf[type](copy.buffer) }];
    }),
  );
}

/**
 * The frames of a stream, however its bytes are cut into chunks. One that the stream's end cuts off is left out.
 * @param {AsyncIterable<Uint8Array>} stream
 * @returns {AsyncGenerator<{ message: object, values: Record<string, object> }>}
 */
export async function* readFrames(stream) {
  const chunks = stream[Symbol.asyncIterator]();
  let held = [];
  const more = async () => {
    const { value, done } = await chunks.next();
    if (!done) held.push(value);
    return !done;
  };
  for (;;) {
    while (!held.some((chunk) => chunk.includes(0x0a))) if (!(await more())) return;
    const head = Buffer.concat(held);
    const end = head.indexOf(0x0a);
    const { tensors, ...message } = JSON.parse(head.subarray(0, end).toString());
    held = [head.subarray(end + 1)];
    const length = tensors.reduce((sum, { bytes }) => sum + bytes, 0);
    while (held.reduce((sum, chunk) => sum + chunk.length, 0) < length) if (!(await more())) return;
    const body = Buffer.concat(held);
    held = [body.subarray(length)];
    yield { message, values: decodeTensors(tensors, body) };
  }
}
