/** Time of all nodes of one operator in a profile. */
export interface OperatorProfile {
  /** The operator. */
  readonly opType: string;
  /** Where its nodes ran: 'cpu', 'cuda', ... The same operator elsewhere is an entry of its own. */
  readonly provider: string;
  /** How often nodes of the operator ran. */
  readonly count: number;
  /** Without the time of nodes in the bodies of control flow, which are counted by themselves. */
  readonly totalMicroseconds: number;
  /** Share of the time of all nodes, 0 to 1. */
  readonly share: number;
}

/** What `endProfiling()` returns. */
export interface ProfileSummary {
  /** The trace file, for chrome://tracing or Perfetto; '' where it could not be written. */
  readonly path: string;
  /** Runs of the session while the profile was on. */
  readonly runs: number;
  /** Wall time of the runs. */
  readonly runMicroseconds: number;
  /** Slowest first. */
  readonly operators: readonly OperatorProfile[];
  /** The events of the trace as parsed JSON. */
  readonly events: readonly ProfileEvent[];
}

/** One event of the trace, times in microseconds since profiling began. */
export interface ProfileEvent {
  /** 'Node' for a node; 'Session' for a load, a run and what else lies around nodes. */
  readonly cat: string;
  /** What was timed: 'model_run', or a node's name and '_kernel_time', ... */
  readonly name: string;
  /** When it began. */
  readonly ts: number;
  /** How long it took. */
  readonly dur: number;
  /** The process. */
  readonly pid: number;
  /** The thread that did it. */
  readonly tid: number;
  /** Always 'X': an event with a duration. */
  readonly ph: string;
  /** More of it; of a node operator, provider, sizes, types and shapes, numbers as text. */
  readonly args: Readonly<Record<string, unknown>>;
}

/** Summarises a trace, a JSON array of events. */
export function summarizeProfile(path: string, trace: string): ProfileSummary {
  const events = (trace === '' ? [] : JSON.parse(trace)) as ProfileEvent[];
  const operators = new Map<string, { opType: string; provider: string; count: number; total: number }>();
  let runs = 0;
  let runMicroseconds = 0;
  let nodeMicroseconds = 0;
  const withoutBodies = ownTimes(events);
  for (const [i, { cat, name, dur, args }] of events.entries()) {
    if (cat === 'Session' && name === 'model_run') {
      runs++;
      runMicroseconds += dur;
    } else if (isNode({ cat, name })) {
      const own = withoutBodies[i] as number;
      const opType = String(args['op_name']);
      const provider = String(args['provider']);
      const key = `${opType}\0${provider}`;
      const entry = operators.get(key) ?? { opType, provider, count: 0, total: 0 };
      operators.set(key, entry);
      entry.count++;
      entry.total += own;
      nodeMicroseconds += own;
    }
  }
  const table = [...operators.values()]
    .sort((a, b) => b.total - a.total)
    .map(({ opType, provider, count, total }) => ({
      opType,
      provider,
      count,
      totalMicroseconds: total,
      share: nodeMicroseconds === 0 ? 0 : total / nodeMicroseconds,
    }));
  return { path, runs, runMicroseconds, operators: table, events };
}

function isNode({ cat, name }: Pick<ProfileEvent, 'cat' | 'name'>): boolean {
  return cat === 'Node' && name.endsWith('_kernel_time');
}

/** Time of each event without that of the nodes that ran within it: these are of its thread, and stand before it. */
function ownTimes(events: readonly ProfileEvent[]): number[] {
  const unclaimed = new Map<number, ProfileEvent[]>(); // by thread: nodes that may turn out to have run within another
  return events.map((event) => {
    if (!isNode(event)) return event.dur;
    let nodes = unclaimed.get(event.tid);
    if (nodes === undefined) unclaimed.set(event.tid, (nodes = []));
    let own = event.dur;
    for (let last = nodes.at(-1); last !== undefined && last.ts >= event.ts; last = nodes.at(-1)) {
      own -= last.dur;
      nodes.pop();
    }
    nodes.push(event);
    return Math.max(0, own); // times are whole microseconds
  });
}
