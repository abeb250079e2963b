import { Placement, type NativeValueInfo } from '../native.js';
import { checkValue, feedOf, readTarget, readValue, writeValue, type RawValue } from './feeds.js';
import { missingInput } from './missing-input.js';
import { DevicePlacement, type OutputTarget, type RequestedOutput } from './outputs.js';
import { strayFeeds } from './stray-feeds.js';
import { WireWriter } from './wire.js';

/** Makes the wire form of the runs of one session. */
export class RunEncoder {
  #warned = false;

  /** `everything`: all outputs, where the session's options want them. `warn`: hears of feeds that no input takes. */
  constructor(
    private readonly inputs: readonly NativeValueInfo[],
    private readonly inputNames: readonly string[],
    private readonly outputs: readonly NativeValueInfo[],
    private readonly everything: readonly RequestedOutput[],
    private readonly warn: (message: string, level: number | undefined) => void,
  ) {}

  /**
   * Reads all of the user's objects, then checks them, then writes them down. `fetches` absent: all outputs. The writer
   * is the caller's to give back. `level`: the run's own of its log. Throws TypeError, RangeError and InferenceError for
   * what is missing or does not fit.
   */
  encode(
    feeds: Readonly<Record<string, unknown>>,
    fetches: Readonly<Record<string, OutputTarget>> | undefined,
    level?: number,
  ): { wire: WireWriter; requested: readonly RequestedOutput[] } {
    const fed: (RawValue | undefined)[] = [];
    let count = 0;
    for (const info of this.inputs) {
      const value = feedOf(feeds, info.name);
      if (value === undefined && !info.overridable) throw missingInput(info.name, feeds, this.inputNames);
      if (value !== undefined) count++;
      fed.push(value === undefined ? undefined : readValue(value, info));
    }
    if (Object.keys(feeds).length > count) this.lookForStrays(feeds, level);
    const requested = fetches === undefined ? this.everything : this.#readFetches(fetches);

    // From here on, nothing of the user's runs before the addon has taken the bytes.
    const wire = WireWriter.take();
    this.inputs.forEach((info, index) => {
      const raw = fed[index];
      if (raw !== undefined) checkValue(raw, info);
    });
    for (const { index, target } of requested) {
      if (target !== undefined) checkValue(target.raw, this.outputs[index] as NativeValueInfo, 'output');
    }
    wire.number(count);
    fed.forEach((raw, index) => {
      if (raw === undefined) return;
      wire.number(index);
      writeValue(wire, raw);
    });
    wire.number(requested.length);
    for (const { index, target, device } of requested) {
      wire.number(index);
      if (target !== undefined && target.copy === undefined) {
        wire.number(Placement.Target);
        writeValue(wire, target.raw);
      } else if (device !== undefined) {
        wire.number(Placement.Device);
        wire.item(device);
      } else wire.number(Placement.JavaScript);
    }
    return { wire, requested };
  }

  /** Warns, once in a session's life, of feeds that no input takes. onnxruntime-node ignores them, so it is no error. */
  lookForStrays(feeds: Readonly<Record<string, unknown>>, level?: number): void {
    if (this.#warned) return;
    const message = strayFeeds(
      feeds,
      this.inputs.map(({ name }) => name),
    );
    if (message === undefined) return;
    this.#warned = true;
    this.warn(message, level);
  }

  #readFetches(fetches: Readonly<Record<string, OutputTarget>>): RequestedOutput[] {
    const requested: RequestedOutput[] = [];
    for (const output of this.everything) {
      if (!Object.hasOwn(fetches, output.name)) continue;
      const target = fetches[output.name];
      const { index, name } = output;
      if (target === null || target === undefined) requested.push(output);
      else if (target instanceof DevicePlacement) requested.push({ index, name, device: target.device });
      else {
        const read = readTarget(target, this.outputs[index] as NativeValueInfo);
        requested.push({ index, name, target: { tensor: target, ...read } });
      }
    }
    return requested;
  }
}
