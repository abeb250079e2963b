import type { Observer, Range } from './observer.js';

const { fround } = Math;

/** `count` bins of one length: their edges, as numpy computes them in float32. */
function evenEdges(count: number, lowest: number, highest: number): Float32Array {
  const [first, last] = lowest === highest ? [lowest - 0.5, highest + 0.5] : [lowest, highest];
  const step = fround(fround(fround(last) - fround(first)) / count);
  const edges = Float32Array.from({ length: count + 1 }, (_, i) => fround(fround(i * step) + fround(first)));
  edges[count] = last;
  return edges;
}

/** How many numbers are in each bin. The bins are of about one length; the last has its upper edge, too. */
function fill(counts: Float64Array, edges: Float32Array, data: Float32Array, absolute: boolean): void {
  const bins = counts.length;
  const first = edges[0] as number;
  const last = edges[bins] as number;
  const perBin = bins / (last - first);
  for (let i = 0; i < data.length; i++) {
    const value = absolute ? Math.abs(data[i] as number) : (data[i] as number);
    if (!(value >= first && value <= last)) continue;
    let bin = Math.min(Math.floor((value - first) * perBin), bins - 1);
    while (bin > 0 && value < (edges[bin] as number)) bin--;
    while (bin < bins - 1 && value >= (edges[bin + 1] as number)) bin++;
    counts[bin] = (counts[bin] as number) + 1;
  }
}

/** Numbers by bins that are even around 0, or, of absolute values, from the least one. */
export class Histogram {
  counts: Float64Array = new Float64Array(0);
  edges: Float32Array = new Float32Array(0);
  lowest = Infinity;
  highest = -Infinity;
  #threshold = 0;
  #stride: [lowest: number, highest: number, least: number] = [Infinity, -Infinity, Infinity];

  constructor(
    private readonly bins: number,
    private readonly absolute: boolean,
  ) {}

  /** The first pass: which edges there must be. */
  widen(data: Float32Array, [lowest, highest]: Range): void {
    const [least, largest, closest] = this.#stride;
    let near = closest;
    if (this.absolute && this.edges.length === 0) {
      for (let i = 0; i < data.length; i++) near = Math.min(near, Math.abs(data[i] as number));
    }
    this.#stride = [Math.min(least, lowest), Math.max(largest, highest), near];
  }

  /** Between the passes. */
  makeEdges(): void {
    const [lowest, highest, closest] = this.#stride;
    if (lowest > highest) return;
    const furthest = Math.max(Math.abs(lowest), Math.abs(highest));
    if (this.edges.length === 0) {
      this.#threshold = furthest;
      this.edges = evenEdges(this.bins, this.absolute ? closest : -furthest, furthest);
      this.counts = new Float64Array(this.bins);
    } else if (this.absolute) {
      this.#lengthen(furthest);
    } else if (furthest > this.#threshold) {
      this.#spread(furthest);
    }
    this.lowest = Math.min(this.lowest, lowest);
    this.highest = Math.max(this.highest, highest);
    this.#stride = [Infinity, -Infinity, Infinity];
  }

  /** The second pass. */
  count(data: Float32Array): void {
    fill(this.counts, this.edges, data, this.absolute);
  }

  /** Bins are added up to `furthest`. */
  #lengthen(furthest: number): void {
    const [first = 0, second = 0] = this.edges;
    const last = this.edges.at(-1) as number;
    if (furthest <= last) return;
    const width = fround(second - first);
    const start = fround(last + width);
    const added = Math.ceil(fround(fround(fround(furthest + width) - start) / width));
    const step = fround(fround(start + width) - start);
    const more = Array.from({ length: added }, (_, i) => fround(start + fround(i * step)));
    this.edges = Float32Array.from([...this.edges, ...more]);
    this.#keepCounts(added, 0);
  }

  /** Bins of the same length are added on both sides, so that `furthest` is in one. */
  #spread(furthest: number): void {
    const bins = this.counts.length;
    if (this.#threshold === 0) {
      this.#threshold = furthest;
      this.edges = evenEdges(bins, -furthest, furthest);
      return;
    }
    const stride = fround(fround(2 * this.#threshold) / bins);
    const half = Math.trunc(Math.floor(fround(furthest - this.#threshold) / stride) + 1);
    this.#threshold = fround(fround(half * stride) + this.#threshold);
    this.edges = evenEdges(bins + 2 * half, -this.#threshold, this.#threshold);
    this.#keepCounts(2 * half, half);
  }

  #keepCounts(added: number, at: number): void {
    const counts = new Float64Array(this.counts.length + added);
    counts.set(this.counts, at);
    this.counts = counts;
  }
}

/** How a range is chosen of a histogram. */
export type Choose = (histogram: Histogram) => Range;

export class HistogramObserver implements Observer {
  readonly #histogram: Histogram;

  constructor(
    bins: number,
    absolute: boolean,
    private readonly choose: Choose,
  ) {
    this.#histogram = new Histogram(bins, absolute);
  }

  look(data: Float32Array, extremes: Range, pass: number): void {
    if (pass === 0) this.#histogram.widen(data, extremes);
    else this.#histogram.count(data);
  }

  end(pass: number): void {
    if (pass === 0) this.#histogram.makeEdges();
  }

  range(): Range {
    return this.#histogram.edges.length === 0 ? [0, 0] : this.choose(this.#histogram);
  }
}
