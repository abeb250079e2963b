import { rmSync } from 'node:fs';

import type { ProfileEvent, ProfileSummary } from '../index.js';
import { milliseconds, printable, report, table, UsageError, wholeNumber, type Command } from './command.js';
import { fedDims, feedHelp, feedOptions, feedsFor, feedText } from './feeds.js';
import { OutputFile } from './output-file.js';
import { load, loadHelp, loadOptions, sessionOptions } from './load.js';

interface NodeTime {
  readonly name: string;
  readonly operator: string;
  readonly provider: string;
  readonly microseconds: number;
}

const kernelTime = '_kernel_time';

/** The nodes that took the longest in all, longest first. */
function slowestNodes(events: readonly ProfileEvent[], most: number): NodeTime[] {
  const nodes = new Map<string, NodeTime>();
  for (const { cat, name, dur, args } of events) {
    if (cat !== 'Node' || !name.endsWith(kernelTime)) continue;
    const node = name.slice(0, -kernelTime.length);
    const before = nodes.get(node)?.microseconds ?? 0;
    nodes.set(node, { name: node, operator: String(args['op_name']), provider: String(args['provider']), microseconds: before + dur }); // prettier-ignore
  }
  return [...nodes.values()].sort((a, b) => b.microseconds - a.microseconds).slice(0, most);
}

type Found = Omit<ProfileSummary, 'events'> & { readonly nodes: readonly NodeTime[] };

function textOf({ path, runs, runMicroseconds, operators, nodes }: Found): string {
  const perRun = (microseconds: number): string => milliseconds(microseconds / 1000 / runs);
  const share = (part: number): string => `${(part * 100).toFixed(1)} %`;
  const ours = operators.map(({ opType, provider, count, totalMicroseconds, share: part }) => [
    `${printable(opType)} on ${provider.replace(/ExecutionProvider$/, '').toLowerCase()}`,
    String(Math.round(count / runs)),
    perRun(totalMicroseconds),
    share(part),
  ]);
  const slow = nodes.map(({ name, operator, microseconds }) => [
    `${printable(name)} (${printable(operator)})`,
    perRun(microseconds),
    share(microseconds / runMicroseconds),
  ]);
  return [
    `${runs} runs of ${perRun(runMicroseconds)} ms each, with the profile on\n\n`,
    table([['operator', 'nodes', 'ms a run', 'of the nodes'], ...ours]),
    '\n',
    table([['node', 'ms a run', 'of the run'], ...slow]),
    path === '' ? '' : `\nThe trace, for Perfetto or chrome://tracing: ${path}\n`,
  ].join('');
}

export const profile: Command = {
  summary: 'says what the time of a run goes to, by operator and by node, and writes the trace',
  help: `  -r, --runs N          with the profile on; by default 20
      --nodes N         how many of the slowest are listed; by default 10
      --out FILE        where the trace goes; by default infernode_profile_<time>.json in the working folder
${feedHelp}${loadHelp}      --json            for programs
`,
  example: 'infernode profile model.onnx --dim sequence:128',
  options: {
    ...feedOptions,
    ...loadOptions,
    runs: { type: 'string', short: 'r' },
    nodes: { type: 'string' },
    out: { type: 'string' },
    json: { type: 'boolean' },
  },
  async run(path, values) {
    const runs = wholeNumber(values, 'runs', 1, 20);
    const most = wholeNumber(values, 'nodes', 0, 10);
    const out = values['out'] as string | undefined;
    if (out === '-') throw new UsageError('--out takes the name of a file; standard output has the table');
    const file = out === undefined ? undefined : new OutputFile(out, path);
    const [session] = await load(path, sessionOptions(values));
    const feeds = feedsFor(session, values);
    for (let i = 0; i < 3; i++) await session.run(feeds); // plans are made and memory is there
    session.startProfiling();
    for (let i = 0; i < runs; i++) await session.run(feeds);
    const { events, ...summary } = session.endProfiling() as ProfileSummary;
    await session.release();
    if (file !== undefined) {
      if (summary.path !== '') rmSync(summary.path);
      file.write(`[${events.map((event) => JSON.stringify(event)).join(',\n')}]\n`);
    }
    const found = { ...summary, path: out ?? summary.path, feeds: fedDims(feeds), nodes: slowestNodes(events, most) };
    report(values, found, `fed: ${feedText(feeds)}\n${textOf(found)}`);
  },
};
