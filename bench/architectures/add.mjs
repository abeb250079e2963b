// The smallest model there is: one Add, of which a run costs what any run does.
import { bytes, integer, message, operatorSet, value } from './onnx-messages.mjs';

/** A file's bytes: C = A + B, float32 of dims [1, 2]. */
export function addModel() {
  const node = message(1, bytes(1, 'A'), bytes(1, 'B'), bytes(2, 'C'), bytes(4, 'Add'));
  const values = [value(11, 'A', [1, 2]), value(11, 'B', [1, 2]), value(12, 'C', [1, 2])];
  return Buffer.concat([integer(1, 8), message(7, node, bytes(2, 'add'), ...values), operatorSet('', 15)]);
}
