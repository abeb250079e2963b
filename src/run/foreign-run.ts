import {
  Tensor as CommonTensor,
  type InferenceSession as Common,
  type InferenceSessionHandler,
  type Tensor,
} from 'onnxruntime-common';

import type { RunOptions } from '../options/run-options.js';
import { feedOf } from './feeds.js';
import { missingInput } from './missing-input.js';
import type { ValueMap } from './outputs.js';
import type { RunArguments } from './run-arguments.js';

/**
 * A run of a session that another backend made; results are tensors of this copy of onnxruntime-common. Throws
 * INVALID_ARGUMENT for an input that is missing, and what that backend throws.
 */
export async function runForeign(
  handler: InferenceSessionHandler,
  feeds: ValueMap,
  fetches: RunArguments['fetches'],
  options: RunOptions = {},
): Promise<Common.ReturnType> {
  const { inputNames, outputNames } = handler;
  for (const name of inputNames) {
    if (feedOf(feeds, name) === undefined) throw missingInput(name, feeds, inputNames);
  }
  const all = fetches ?? Object.fromEntries(outputNames.map((name) => [name, null]));
  const results = await handler.run(feeds as Common.FeedsType, all, options);
  const values = Object.entries(results).map(([name, value]) => [
    name,
    value instanceof CommonTensor
      ? value
      : new CommonTensor((value as Tensor).type, (value as Tensor).data, (value as Tensor).dims),
  ]);
  return Object.fromEntries(values) as Common.ReturnType;
}
