import type { Tensor, InferenceSession as Common } from 'onnxruntime-common';

import { InferenceError, rangeError, typeError } from './errors.js';
import { nearestName } from './options/nearest-name.js';
import type { RunOptions } from './options/run-options.js';
import { DevicePlacement, type OutputTarget } from './run/outputs.js';
import type { NativeSessionHandler } from './session-handler.js';
import { describe } from './tensor/tensor-data.js';
import type { InferenceValue } from './tensor/tensor-types.js';

interface BoundArguments {
  readonly feeds: Record<string, InferenceValue>;
  readonly fetches: Record<string, OutputTarget> | undefined;
}

/**
 * Inputs and outputs fixed for many runs of a session. Tensors in the engine's memory (`session.allocate()`, outputs
 * bound to a device) are used where they are; a tensor in JavaScript's memory is read, or written, at each run.
 */
export class IoBinding {
  readonly #handler: NativeSessionHandler;
  readonly #inputs = new Map<string, InferenceValue>();
  readonly #targets = new Map<string, OutputTarget>();
  /** What runs take of both; absent until the next run where something was bound since. */
  #arguments: BoundArguments | undefined;
  #outputs: Common.ReturnType = {};

  /** @internal */
  constructor(handler: NativeSessionHandler) {
    this.#handler = handler;
  }

  /** Throws INVALID_ARGUMENT where the binding is another session's. @internal */
  checkHandler(handler: unknown): void {
    if (handler === this.#handler) return;
    throw new InferenceError('INVALID_ARGUMENT', 'The binding belongs to another session: run it there.');
  }

  /**
   * Binds a value to an input or an overridable initializer; runs read it. Throws TypeError for a name that is no
   * string or what is no value, and RangeError for one that the model lacks.
   */
  bindInput(name: string, value: InferenceValue): this {
    checkName(name, [...this.#handler.inputNames, ...this.#handler.overridableInputNames], 'input');
    if (typeof value !== 'object') {
      throw typeError(`An input is bound to a value of the model's, got ${describe(value)}.`, { input: name });
    }
    this.#inputs.set(name, value);
    this.#arguments = undefined;
    return this;
  }

  /**
   * Binds an output to a tensor that it is written into (its shape has to be right), or to a device, by name: 'cpu'
   * (the engine's host memory, the default), 'cuda:0', ...; each run then makes a new tensor there. Throws TypeError
   * for anything else, RangeError for a name that the model lacks, and InferenceError: INVALID_ARGUMENT for a device
   * that the session does not have, DISPOSED.
   */
  bindOutput(name: string, target: Tensor | string = 'cpu'): this {
    checkName(name, this.#handler.outputNames, 'output');
    if (typeof target !== 'string' && (typeof target !== 'object' || (target as unknown) === null)) {
      throw typeError(`An output is bound to a Tensor or a device name, got ${describe(target)}.`, { output: name });
    }
    if (typeof target === 'string') this.#handler.checkDevice(target, name);
    this.#targets.set(name, typeof target === 'string' ? new DevicePlacement(target) : target);
    this.#arguments = undefined;
    return this;
  }

  /** Forgets bound inputs. */
  clearInputs(): void {
    this.#inputs.clear();
    this.#arguments = undefined;
  }

  /** Forgets bound outputs and the results of the last run. */
  clearOutputs(): void {
    this.#targets.clear();
    this.#arguments = undefined;
    this.#outputs = {};
  }

  /** Forgets all that is bound, and the results of the last run. */
  clear(): void {
    this.clearInputs();
    this.clearOutputs();
  }

  /** Results of the last run, by name; none before it. */
  get outputs(): Common.ReturnType {
    return this.#outputs;
  }

  /**
   * Runs the session; computes the bound outputs, or all of them, as JavaScript tensors, if none is bound. Rejects with
   * what `InferenceSession.run` rejects with.
   */
  async run(options?: RunOptions): Promise<Common.ReturnType> {
    const { feeds, fetches } = this.#bound();
    this.#outputs = await this.#handler.run(feeds, fetches, options);
    return this.#outputs;
  }

  /** `run` on the calling thread. Throws what `run` rejects with. */
  runSync(options?: RunOptions): Common.ReturnType {
    const { feeds, fetches } = this.#bound();
    this.#outputs = this.#handler.runSync(feeds, fetches, options);
    return this.#outputs;
  }

  #bound(): BoundArguments {
    this.#arguments ??= {
      feeds: Object.fromEntries(this.#inputs),
      fetches: this.#targets.size === 0 ? undefined : Object.fromEntries(this.#targets),
    };
    return this.#arguments;
  }
}

function checkName(name: unknown, names: readonly string[], role: 'input' | 'output'): void {
  if (typeof name !== 'string') throw typeError(`The name of an ${role} must be a string, got ${describe(name)}.`);
  if (names.includes(name)) return;
  const nearest = nearestName(name, names);
  const hint =
    nearest === undefined ? `It has ${names.map((known) => `'${known}'`).join(', ')}.` : `Did you mean '${nearest}'?`;
  throw rangeError(`The model has no ${role} '${name}'. ${hint}`, { [role]: name });
}
