import type { InferenceSession } from '../index.js';
import { milliseconds, report, table, wholeNumber, type Command } from './command.js';
import { fedDims, feedHelp, feedOptions, feedsFor, feedText, type Feeds } from './feeds.js';
import { load, loadHelp, loadOptions, sessionOptions } from './load.js';

/** Runs from `concurrent` places at a time until `most` are begun or `seconds` are over; how long each took, in ms. */
async function measure(
  session: InferenceSession,
  feeds: Feeds,
  most: number,
  seconds: number,
  concurrent: number,
): Promise<number[]> {
  const end = performance.now() + seconds * 1000;
  const times: number[] = [];
  let begun = 0;
  const place = async (): Promise<void> => {
    while (begun < most && (begun === 0 || performance.now() < end)) {
      begun++;
      const start = performance.now();
      await session.run(feeds);
      times.push(performance.now() - start);
    }
  };
  await Promise.all(Array.from({ length: concurrent }, place));
  return times;
}

/** Mean, deviation and percentiles: the time that so many of the runs do not exceed. */
export function statistics(times: readonly number[]): Record<string, number> {
  const sorted = [...times].sort((a, b) => a - b);
  const mean = times.reduce((sum, time) => sum + time, 0) / times.length;
  const variance = times.reduce((sum, time) => sum + (time - mean) ** 2, 0) / times.length;
  const at = (part: number): number => sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] as number;
  return {
    mean,
    deviation: Math.sqrt(variance),
    min: at(0),
    p50: at(0.5),
    p90: at(0.9),
    p95: at(0.95),
    p99: at(0.99),
    p999: at(0.999),
    max: at(1),
  };
}

export const perf: Command = {
  summary: 'measures how long a model takes to load and to run, on values that it makes',
  help: `  -t, --seconds N       how long to run; by default 5
  -r, --runs N          how often at most
  -c, --concurrent N    runs at a time; by default 1
      --warm-up N       runs before the measured ones, the first not counted; by default 3
${feedHelp}${loadHelp}      --json            for programs
`,
  example: 'infernode perf model.onnx --dim batch:8 --threads 2',
  options: {
    ...feedOptions,
    ...loadOptions,
    seconds: { type: 'string', short: 't' },
    runs: { type: 'string', short: 'r' },
    concurrent: { type: 'string', short: 'c' },
    'warm-up': { type: 'string' },
    json: { type: 'boolean' },
  },
  async run(path, values) {
    const seconds = wholeNumber(values, 'seconds', 1, values['runs'] === undefined ? 5 : 1e9);
    const most = wholeNumber(values, 'runs', 1, Infinity);
    const concurrent = wholeNumber(values, 'concurrent', 1, 1, 10_000);
    const warmUp = wholeNumber(values, 'warm-up', 0, 3);
    const [session, loadMs] = await load(path, sessionOptions(values));
    const feeds = feedsFor(session, values);
    const [firstRunMs = NaN] = await measure(session, feeds, 1, 0, 1);
    if (warmUp > 0) await measure(session, feeds, warmUp, 1e9, concurrent);

    const before = process.cpuUsage();
    const start = performance.now();
    const times = await measure(session, feeds, most, seconds, concurrent);
    const wall = performance.now() - start;
    const { user, system } = process.cpuUsage(before);
    const latencyMs = statistics(times);
    const found = {
      path,
      feeds: fedDims(feeds),
      loadMs,
      firstRunMs,
      runs: times.length,
      runsPerSecond: (times.length * 1000) / wall,
      latencyMs,
      processors: (user + system) / 1000 / wall,
      sessionBytes: session.memoryBytes,
      peakBytes: process.resourceUsage().maxRSS * 1024,
    };
    await session.release();
    const ms = (value: number): string => `${milliseconds(value)} ms`;
    const mb = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
    const rows = [
      ['load', ms(loadMs)],
      ['first run', ms(firstRunMs)],
      [`runs${concurrent > 1 ? `, ${concurrent} at a time` : ''}`, String(found.runs)],
      ['runs a second', found.runsPerSecond.toPrecision(4)],
      ...Object.entries(latencyMs).map(([name, value]) => [name.replace('p999', 'p99.9'), ms(value)]),
      ['processors in use', found.processors.toFixed(2)],
      ['session', mb(found.sessionBytes)],
      ['process, at its peak', mb(found.peakBytes)],
    ];
    report(values, found, `fed: ${feedText(feeds)}\n${table(rows)}`);
  },
};
