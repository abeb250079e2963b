// What the set `costs` says: rows of one number with the goal that it is held against.
//
// A row holds { name, unit, ours } and, where there is a peer, { theirs, ratio } (theirs over ours, the median of the
// rounds' ratios), or { name, failed }, or { name, test } where a test holds what the name says. `goal` is one of { most },
// { least } and { times }: at least so many times as good as the peer.

import { gist } from './report.mjs';

const units = {
  µs: (value) => `${value.toFixed(2)} µs`,
  ms: (value) => `${value.toFixed(value < 0.1 ? 3 : value < 10 ? 2 : 1)} ms`,
  times: (value) => value.toFixed(2),
  share: (value) => `${Math.round(100 * value)} %`,
};

const shown = (unit, value) => (value === undefined ? '' : units[unit](value));

/** The goal in words. */
export function goalText({ unit, goal }) {
  if (goal.times !== undefined) return `${goal.times} times the peer's speed`;
  return goal.most !== undefined ? `at most ${units[unit](goal.most)}` : `at least ${units[unit](goal.least)}`;
}

/** Whether a row's goal holds; undefined where nothing says so. */
export function holds({ ours, ratio, goal, failed, test }) {
  if (failed) return false;
  if (test) return undefined;
  if (goal.times !== undefined) return ratio === undefined ? undefined : ratio >= goal.times;
  return goal.most !== undefined ? ours <= goal.most : ours >= goal.least;
}

const verdict = (row) => {
  if (row.failed) return `failed: ${gist(row.failed)}`;
  if (row.test) return `test: ${row.test}`;
  return { true: 'yes', false: '**no**', undefined: '' }[holds(row)];
};

const ratioText = ({ ratio, lowest, highest }) =>
  ratio === undefined ? '' : `${ratio.toFixed(2)} (${lowest.toFixed(2)} to ${highest.toFixed(2)})`;

const cells = (row) => [
  row.name,
  shown(row.unit, row.ours),
  shown(row.unit, row.theirs),
  ratioText(row),
  row.goal ? goalText(row) : '',
  verdict(row),
];

/** A row as one line. */
export function costText(row) {
  const [name, ours, theirs, ratio, goal, said] = cells(row);
  const numbers = [name.padEnd(66), ours.padStart(10), theirs.padStart(10), ratio.padStart(20)].join(' ');
  return `${numbers}  ${[goal, said].filter(Boolean).join(': ')}`.trimEnd().replaceAll('**', '');
}

export const costHead = `${''.padEnd(66)} ${'ours'.padStart(10)} ${'peer'.padStart(10)} ${'ratio'.padStart(20)}  goal`;

/**
 * The rows as Markdown.
 * @param {{ command: string, machine: string, versions: string, rows: object[] }} results
 */
export function costMarkdown({ command, machine, versions, rows }) {
  const line = (list) => `| ${list.join(' | ')} |`;
  const held = rows.map(holds).filter((item) => item !== undefined);
  return [
    `\`${command}\``,
    `${machine}; ${versions}.`,
    [
      line(['what', 'ours', 'peer', 'ratio', 'goal', 'holds']),
      line(['---', '---:', '---:', '---:', '---', '---']),
      ...rows.map((row) => line(cells(row))),
    ].join('\n'),
    `${held.filter(Boolean).length} of ${held.length} goals hold.`,
  ].join('\n\n');
}
