// The command line of the benchmark.
import { parseArgs } from 'node:util';

export const peers = ['ort', 'openvino', 'none'];
export const sets = ['architectures', 'real', 'trees'];
/** What stands in a table of its own, and only where it is asked for. */
const ownSets = ['costs', 'random'];
/** What the set `costs` has no use for: its numbers come with the engines' own settings. */
const notOfCosts = ['threads', 'level', 'cpu', 'precision', 'seconds'];
/** What only the set `random` has a use for. */
const notOfOthers = ['seed', 'count'];
const levels = ['disabled', 'basic', 'extended', 'layout', 'all'];
const targets = ['baseline', 'avx2', 'avx512', 'vnni', 'bf16', 'amx', 'neon', 'dotprod', 'i8mm'];
const precisions = ['highest', 'high', 'medium'];

const options = {
  peer: { type: 'string', default: 'ort' },
  threads: { type: 'string', default: '1,2' },
  only: { type: 'string', default: '' },
  set: { type: 'string', default: 'all' },
  level: { type: 'string' },
  cpu: { type: 'string' },
  precision: { type: 'string' },
  seed: { type: 'string', default: '1' },
  count: { type: 'string', default: '40' },
  rounds: { type: 'string', default: '7' },
  seconds: { type: 'string', default: '0.5' },
  json: { type: 'string' },
  readme: { type: 'boolean', default: false },
};

const either = (words) => `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;

/** A --json without a file writes to standard output. */
const withJsonFile = (args) =>
  args.map((arg, i) => (arg === '--json' && (args[i + 1] ?? '--').startsWith('--') ? '--json=-' : arg));

function split(args) {
  try {
    return parseArgs({ args: withJsonFile(args), options }).values;
  } catch (error) {
    const [said] = error.message.split(/\. |\n/);
    throw new Error(`${said.replace(/\.$/, '')}; --help says what there is`);
  }
}

/**
 * The options in the forms they are used in.
 * @param {string[]} args
 * @throws {Error} one line that names the option and what it takes
 */
export function parseOptions(args) {
  const values = split(args);
  const choice = (name, words) => {
    if (values[name] !== undefined && !words.includes(values[name]))
      throw new Error(`--${name} ${values[name]}: use ${either(words)}`);
    return values[name];
  };
  const numbers = (name, texts, what, fits) =>
    texts.map((text) => {
      const number = text.trim() === '' ? NaN : Number(text);
      if (!fits(number)) throw new Error(`--${name} ${values[name]}: use ${what}`);
      return number;
    });
  const count = (most) => (number) => Number.isInteger(number) && number >= 1 && number <= most;
  const set = choice('set', [...sets, ...ownSets, 'all']);
  let only;
  try {
    only = new RegExp(values.only);
  } catch (error) {
    throw new Error(`--only ${values.only}: ${error.message}`);
  }
  const parsed = {
    peer: choice('peer', peers),
    threads: [...new Set(numbers('threads', values.threads.split(','), 'counts of threads, such as 1,2', count(1024)))],
    only,
    sets: set === 'all' ? sets : [set],
    level: choice('level', levels),
    cpu: choice('cpu', targets),
    precision: choice('precision', precisions),
    rounds: numbers('rounds', [values.rounds], 'a number of rounds from 1', count(10_000))[0],
    seconds: numbers('seconds', [values.seconds], 'seconds above 0', (number) => number > 0 && number <= 3600)[0],
    seed: numbers(
      'seed',
      [values.seed],
      'a whole number from 0',
      (n) => Number.isInteger(n) && n >= 0 && n < 2 ** 31,
    )[0],
    count: numbers('count', [values.count], 'a number of networks from 1', count(10_000))[0],
    json: values.json,
    readme: values.readme,
  };
  if (set === 'costs') {
    const given = notOfCosts.find((name) => args.some((arg) => arg === `--${name}` || arg.startsWith(`--${name}=`)));
    if (given) throw new Error(`--${given} is not for --set costs`);
    if (parsed.peer === 'openvino') throw new Error('--peer openvino is not for --set costs: use ort or none');
  }
  if (set !== 'random') {
    const given = notOfOthers.find((name) => args.some((arg) => arg === `--${name}` || arg.startsWith(`--${name}=`)));
    if (given) throw new Error(`--${given} is for --set random`);
  }
  if (parsed.readme && parsed.peer === 'none') throw new Error('--readme needs a peer to compare with');
  if (values.json === '') throw new Error('--json=: name a file, or give --json alone');
  return parsed;
}

/** The name of the table in bench/README.md that results with these options belong in. */
export const tableName = ({ sets: [set], peer, precision, level, cpu }) =>
  [ownSets.includes(set) ? set : peer, precision, level && `level ${level}`, cpu && `cpu ${cpu}`]
    .filter(Boolean)
    .join(' ');

/** The command that measures the same, as a shell takes it; where else results went is left out. */
export function commandLine(args) {
  const own = withJsonFile(args).filter((arg, i, all) => !/^--json(=|$)/.test(arg) && all[i - 1] !== '--json');
  const quoted = own.map((arg) => (/^[\w.,:=/-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", `'\\''`)}'`));
  return ['npm run bench --', ...quoted].join(' ');
}
