import { env } from 'onnxruntime-common';

import { InferenceError } from '../errors.js';
import { show } from '../tensor/tensor-data.js';
import { severities } from './log-message.js';
import { nearestValue } from './nearest-name.js';

/** Has onnxruntime-common's `env.logLevel` say which levels there are where it is set to another. */
export function explainLogLevel(): void {
  const given = Object.getOwnPropertyDescriptor(env, 'logLevel');
  const { set, configurable } = given ?? {};
  if (set === undefined || configurable !== true) return;
  const checked = (value: unknown): void => {
    if (value !== undefined && !(severities as readonly unknown[]).includes(value)) throw wrongLevel(value);
    set.call(env, value);
  };
  Object.defineProperty(env, 'logLevel', { ...given, set: checked });
}

/** Begins as onnxruntime-common's own error does. */
function wrongLevel(value: unknown): InferenceError {
  const meant = typeof value === 'string' ? nearestValue(value, severities) : undefined;
  const expected = `one of '${severities.join("', '")}'`;
  const message = `Unsupported logging level: ${show(value)}. env.logLevel must be ${expected}.`;
  return new InferenceError('INVALID_ARGUMENT', meant === undefined ? message : `${message} Did you mean '${meant}'?`, {
    expected,
    actual: show(value),
  });
}
