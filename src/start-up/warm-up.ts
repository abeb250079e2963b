import { makeSession } from '../inference-session.js';
import { parseModelArguments } from '../model-arguments.js';
import { Kind, type NativeSession, type NativeValueInfo } from '../native.js';
import { NativeSessionHandler } from '../session-handler.js';
import { parseSessionOptions } from '../options/session-options.js';
import { Tensor } from '../tensor/tensor.js';

const value: NativeValueInfo = {
  name: 'value',
  kind: 'tensor',
  optional: false,
  elementType: 1,
  shape: [1],
  overridable: false,
};

/** A session that gives the same number for whatever it is fed. */
const still = {
  inputs: [value],
  outputs: [value],
  devices: ['cpu'],
  run: () => ({ numbers: Float64Array.of(Kind.Tensor, value.elementType, 1, 1), items: [new ArrayBuffer(4)] }),
} as unknown as NativeSession;

/**
 * Has V8 compile what `create` and `run` consist of, which it puts off to a function's first call: the first load and
 * the first run of a process would hold the event loop for twice as long otherwise. Nothing of it reaches the addon.
 */
export function warmUp(): void {
  parseModelArguments([value.name, { intraOpNumThreads: 1 }]);
  const { preferredOutputLocation } = parseSessionOptions({ intraOpNumThreads: 1 });
  const session = makeSession(new NativeSessionHandler(still, preferredOutputLocation));
  session.run({ [value.name]: new Tensor('float32', [0], [1]) }).catch(() => undefined);
}
