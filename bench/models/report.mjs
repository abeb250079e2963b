// What the benchmark writes: lines as it goes, geometric means, and the tables of bench/README.md.
//
// A row holds { name, set, threads } and then { wrong } or { failed }, or { ours } in ms and with a peer { theirs, ratio,
// lowest, highest } or { peerFailed }; `weights` where it is bound by reading so many bytes of them.
import { boundByReading } from './weights.mjs';
import { geometricMean } from './statistics.mjs';

const digits = (value) => value.toFixed(value < 1 ? 3 : value < 10 ? 2 : 1);
const spread = ({ lowest, highest }) => `(${lowest.toFixed(2)} to ${highest.toFixed(2)})`;
const plainThreads = (threads) => `${threads} thread${threads === 1 ? '' : 's'}`;
const unique = (values) => [...new Set(values)];

/** What was wrong: the text of a process that ended holds a trace, and in its middle that. */
export const gist = (text) =>
  (/^(?:\s*\[cause\]: )?(\w*Error\b.*: .*)$/m.exec(text)?.[1] ?? text.split('\n')[0]).slice(0, 160);

/** Why a row has no ratio, where it should. */
export function problem({ failed, wrong, peerFailed }) {
  if (failed) return `failed: ${gist(failed)}`;
  if (wrong) return `wrong answer: relative error ${wrong}`;
  return peerFailed && `the peer failed: ${gist(peerFailed)}`;
}

/** A row as one line; a number that is missing leaves its place empty. */
export function rowText(row) {
  const number = (value) =>
    (value === undefined ? '' : value.toFixed(value < 10 ? 3 : value < 100 ? 2 : 1)).padStart(9);
  const head = `${row.name.padEnd(28)} ${row.threads}T`;
  if (row.ours === undefined) return `${head}  ${problem(row)}`;
  if (row.peerFailed) return `${head} ${number(row.ours)}  ${problem(row)}`;
  const ratio = row.ratio === undefined ? '' : ` ${row.ratio.toFixed(2).padStart(6)}  ${spread(row)}`;
  return `${head} ${number(row.ours)} ${number(row.theirs)}${ratio}`;
}

/** The head of such lines. */
export const headText = (peer) =>
  `${'workload'.padEnd(31)} ${'ours ms'.padStart(9)} ${peer === 'none' ? '' : `${'peer ms'.padStart(9)} ${'ratio'.padStart(6)}  (spread)`}`;

/**
 * Geometric means of the ratios of each set, and of its workloads that are bound by arithmetic where some are not. Wrong
 * answers and failures have no ratio and are left out: `workloads` says how many are in.
 * @returns {{ set: string, of: string, threads: number, workloads: number, geometricMean: number }[]}
 */
export function summarize(rows) {
  return unique(rows.map(({ set }) => set)).flatMap((set) =>
    unique(rows.map(({ threads }) => threads)).flatMap((threads) => {
      const rated = rows.filter((row) => row.set === set && row.threads === threads && row.ratio !== undefined);
      const arithmetic = rated.filter(({ name }) => !boundByReading.includes(name));
      const mean = (of, list) =>
        list.length
          ? [{ set, of, threads, workloads: list.length, geometricMean: geometricMean(list.map(({ ratio }) => ratio)) }]
          : [];
      const all = mean('all', rated);
      return arithmetic.length < rated.length ? [...mean('bound by arithmetic', arithmetic), ...all] : all;
    }),
  );
}

export const summaryText = ({ set, of, threads, workloads, geometricMean: mean }) =>
  `geometric mean of ${workloads} ratios of ${set}${of === 'all' ? '' : `, ${of}`}, ${threads}T: ${mean.toFixed(2)}`;

/** GB/s at which a row's weights were read, ours and the peer's. */
const rateOf = (bytes, milliseconds) => bytes / milliseconds / 1e6;

/**
 * How near the rows that are bound by reading weights come to the rate of streaming memory.
 * @param {object[]} rows
 * @param {Record<number, number>} rates GB/s by number of threads
 */
export function streaming(rows, rates) {
  return rows
    .filter(({ weights, ours, threads }) => weights && ours !== undefined && rates[threads])
    .map(({ name, threads, weights, ours, theirs }) => ({
      name,
      threads,
      weights,
      streamRate: rates[threads],
      rate: rateOf(weights, ours),
      share: rateOf(weights, ours) / rates[threads],
      ...(theirs !== undefined && { peerShare: rateOf(weights, theirs) / rates[threads] }),
    }));
}

const percent = (share) => (share === undefined ? '' : `${Math.round(100 * share)} %`);

export const streamingText = ({ name, threads, weights, rate, share, peerShare, streamRate }) =>
  `${name} ${threads}T reads ${(weights / 1e6).toFixed(0)} MB of weights at ${rate.toFixed(1)} GB/s, ` +
  `${percent(share)}${peerShare === undefined ? '' : ` (peer ${percent(peerShare)})`} of ${streamRate.toFixed(1)} GB/s`;

const line = (cells) => `| ${cells.join(' | ')} |`;
const table = (head, rows) =>
  [line(head), line(head.map((_, i) => (i ? '---:' : '---'))), ...rows.map(line)].join('\n');

function cells(row) {
  if (!row) return ['', '', ''];
  if (row.failed) return ['failed', '', ''];
  if (row.wrong) return ['wrong answer', '', ''];
  if (row.peerFailed) return [digits(row.ours), 'failed', ''];
  return [digits(row.ours), digits(row.theirs), `${row.ratio.toFixed(2)} ${spread(row)}`];
}

function ratioTable(set, rows, summary, threads) {
  const own = rows.filter((row) => row.set === set);
  const means = summary.filter((item) => item.set === set);
  const head = threads.flatMap((count) => [`${plainThreads(count)}: ms`, 'peer ms', 'ratio']);
  const of = (list, count) => list.find((item) => item.threads === count);
  return table(
    [set === 'real' ? 'real models' : set, ...head],
    [
      ...unique(own.map(({ name }) => name)).map((name) => {
        const same = own.filter((row) => row.name === name);
        return [name, ...threads.flatMap((count) => cells(of(same, count)))];
      }),
      ...unique(means.map((item) => item.of)).map((kind) => {
        const same = means.filter((item) => item.of === kind);
        return [
          `geometric mean, ${kind}`,
          ...threads.flatMap((count) => {
            const mean = of(same, count);
            return ['', '', mean ? `**${mean.geometricMean.toFixed(2)}** of ${mean.workloads}` : ''];
          }),
        ];
      }),
    ],
  );
}

function streamingTable(list, threads) {
  const head = threads.flatMap((count) => {
    const rate = list.find((item) => item.threads === count)?.streamRate;
    return [`${plainThreads(count)}: GB/s`, rate ? `of ${rate.toFixed(1)}` : '', 'peer'];
  });
  return table(
    ['bound by reading weights', 'MB', ...head],
    unique(list.map(({ name }) => name)).map((name) => {
      const same = list.filter((item) => item.name === name);
      return [
        name,
        (same[0].weights / 1e6).toFixed(0),
        ...threads.flatMap((count) => {
          const item = same.find((other) => other.threads === count);
          return item ? [item.rate.toFixed(1), percent(item.share), percent(item.peerShare)] : ['', '', ''];
        }),
      ];
    }),
  );
}

/**
 * The results as Markdown.
 * @param {{ command: string, machine: string, versions: string, rows: object[], rates: Record<number, number> }} results
 */
export function markdown({ command, machine, versions, rows, rates }) {
  const threads = unique(rows.map((row) => row.threads));
  const summary = summarize(rows);
  const streams = streaming(rows, rates);
  const problems = unique(rows.filter(problem).map((row) => `- ${row.name}: ${problem(row)}`));
  return [
    `\`${command}\``,
    `${machine}; ${versions}.`,
    ...unique(rows.map(({ set }) => set)).map((set) => ratioTable(set, rows, summary, threads)),
    ...(streams.length ? [streamingTable(streams, threads)] : []),
    ...(problems.length ? [problems.join('\n')] : []),
  ].join('\n\n');
}

const begin = (name) => `<!-- table: ${name} -->`;
const end = '<!-- end of table -->';

/**
 * A text with what stands between the two marks of a table replaced.
 * @throws {Error} where the text has no such marks
 */
export function replaceTable(text, name, content) {
  const from = text.indexOf(begin(name));
  const to = text.indexOf(end, from);
  if (from < 0 || to < 0) throw new Error(`no table '${name}': give it a place between '${begin(name)}' and '${end}'`);
  return `${text.slice(0, from)}${begin(name)}\n\n${content}\n\n${text.slice(to)}`;
}
