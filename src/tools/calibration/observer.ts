/** The least and the largest number of a tensor. */
export type Range = readonly [lowest: number, highest: number];

/** Learns the range of one tensor from what it holds in runs. */
export interface Observer {
  /**
   * Sees what a run made, in each pass over the runs of a stride; `extremes` are those of `data`, which has no numbers
   * that are not finite, and which is not empty.
   */
  look(data: Float32Array, extremes: Range, pass: number): void;
  /** A pass over the runs of a stride is over. */
  end(pass: number): void;
  /** What it has found, from all strides. */
  range(): Range;
}

export interface MinMaxOptions {
  readonly symmetric: boolean;
  readonly movingAverage: boolean;
  readonly constant: number;
}

/** The extremes of all runs, or a moving average of their means in strides. */
export class MinMax implements Observer {
  #found: Range | undefined;
  #stride: [lowest: number, highest: number] = [Infinity, -Infinity];
  #runs = 0;

  constructor(private readonly options: MinMaxOptions) {}

  look(_: Float32Array, [lowest, highest]: Range): void {
    const [least, largest] = this.#stride;
    const { movingAverage } = this.options;
    this.#stride =
      movingAverage && this.#runs > 0
        ? [least + lowest, largest + highest]
        : [movingAverage ? lowest : Math.min(least, lowest), movingAverage ? highest : Math.max(largest, highest)];
    this.#runs++;
  }

  end(): void {
    if (this.#runs === 0) return;
    const { movingAverage, symmetric, constant } = this.options;
    const count = movingAverage ? this.#runs : 1;
    let [lowest, highest] = [this.#stride[0] / count, this.#stride[1] / count];
    if (symmetric) {
      highest = Math.max(Math.abs(lowest), Math.abs(highest));
      lowest = -highest;
    }
    if (this.#found === undefined) this.#found = [lowest, highest];
    else {
      const [least, largest] = this.#found;
      this.#found = movingAverage
        ? [least + constant * (lowest - least), largest + constant * (highest - largest)]
        : [Math.min(least, lowest), Math.max(largest, highest)];
    }
    this.#stride = [Infinity, -Infinity];
    this.#runs = 0;
  }

  range(): Range {
    return this.#found ?? [0, 0];
  }
}
