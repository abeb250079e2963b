import type { Choose, Histogram } from './histogram.js';
import type { Range } from './observer.js';

/** A range from edge to edge, without what lies outside of the numbers. */
function between({ edges, lowest, highest }: Histogram, from: number, to: number): Range {
  return [Math.max(edges[from] as number, lowest), Math.min(edges[to] as number, highest)];
}

/** The first bin up to which there is that share of the numbers. */
function binOfShare(counts: Float64Array, share: number): number {
  const total = counts.reduce((sum, count) => sum + count, 0);
  let sum = 0;
  const bin = counts.findIndex((count) => (sum += count / total) >= share);
  return bin < 0 ? counts.length : bin;
}

/** The range that `percentile` percent of the numbers are in: of absolute ones, or as many left out at each end. */
export const percentileRange =
  (percentile: number, absolute: boolean): Choose =>
  (histogram) => {
    const { counts, edges, lowest, highest } = histogram;
    if (absolute) {
      const threshold = edges[binOfShare(counts, percentile / 100)] as number;
      return [Math.max(-threshold, lowest), Math.min(threshold, highest)];
    }
    const cut = (100 - percentile) / 200;
    return between(histogram, binOfShare(counts, cut), binOfShare(counts, 1 - cut));
  };

/** All bins. */
export const wholeRange: Choose = ({ edges }) => [edges[0] as number, edges.at(-1) as number];

const sumOf = (counts: Float64Array): number => counts.reduce((sum, count) => sum + count, 0);

/** A distribution without zeros: each becomes a ten-thousandth, which the others lose. Undefined where that cannot be. */
function smoothed(counts: Float64Array): Float64Array | undefined {
  const share = 0.0001;
  const zeros = counts.reduce((count, value) => count + (value === 0 ? 1 : 0), 0);
  const loss = (share * zeros) / (counts.length - zeros);
  if (!(loss < 1)) return undefined;
  return counts.map((value) => (value === 0 ? share : value - loss));
}

/** The Kullback-Leibler divergence of the second distribution from the first. */
function divergence(real: Float64Array, coded: Float64Array): number {
  const [p, q] = [smoothed(real), smoothed(coded)];
  if (p === undefined || q === undefined) return Infinity;
  const [sumP, sumQ] = [sumOf(p), sumOf(q)];
  return p.reduce((sum, value, i) => sum + (value / sumP) * Math.log(value / sumP / ((q[i] as number) / sumQ)), 0);
}

/** What is left of a distribution of which each of `quantized` codes stands for as many bins. */
function coarse(part: Float64Array, filled: Float64Array, quantized: number): Float64Array {
  const merged = Math.floor(part.length / quantized);
  const coded = new Float64Array(part.length);
  for (let code = 0; code < quantized; code++) {
    const [start, end] = [code * merged, (code + 1) * merged];
    const rest = code === quantized - 1 ? sumOf(part.subarray(end)) : 0;
    const used = filled.subarray(start, end).reduce((count, value) => count + (value === 0 ? 0 : 1), 0);
    if (used > 0) coded.fill(Math.trunc((sumOf(part.subarray(start, end)) + rest) / used), start, end);
  }
  return coded;
}

/** The range around 0 that `quantized` codes of one length lose the least information of, as for TensorRT. */
export const entropyRange =
  (quantized: number): Choose =>
  (histogram) => {
    const { counts } = histogram;
    const middle = Math.floor(counts.length / 2);
    let best: readonly [divergence: number, from: number, to: number] = [Infinity, 0, counts.length];
    for (let half = Math.floor(quantized / 2), first = true; half <= middle; half++, first = false) {
      const [from, to] = [middle - half, Math.min(middle + half + 1, counts.length)];
      const part = counts.slice(from, to);
      const clipped = part.slice();
      clipped[0] = (clipped[0] as number) + sumOf(counts.subarray(0, from));
      clipped[clipped.length - 1] = (clipped.at(-1) as number) + sumOf(counts.subarray(to));
      const found = divergence(clipped, coarse(part, clipped, quantized));
      if (first || found < best[0]) best = [found, from, to];
    }
    return between(histogram, best[1], best[2]);
  };
