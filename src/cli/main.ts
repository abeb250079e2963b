import { parseArgs } from 'node:util';

import { nameHint } from '../hints.js';
import { version } from '../version.js';
import { check } from './check.js';
import { UsageError, type Command, type Values } from './command.js';
import { perf } from './perf.js';
import { profile } from './profile.js';
import { quantizeCommands } from './quantize.js';
import { types } from './types.js';

const commands: Readonly<Record<string, Command>> = { check, perf, profile, ...quantizeCommands, types };

const usage = `usage: infernode COMMAND MODEL [options]

${Object.entries(commands)
  .map(([name, { summary }]) => `${name.padEnd(17)} ${summary}`)
  .join('\n')}

infernode COMMAND --help   says which options there are
infernode --version        prints the package's version
`;

const helpOf = (name: string, { summary, help, example }: Command): string =>
  `usage: infernode ${name} MODEL [options]\n\n${summary}\n${help}\nfor example: ${example}\n`;

/** The command's name, of one word or two, and what follows. */
function split(line: readonly string[]): readonly [name: string, args: readonly string[]] {
  const two = line.slice(0, 2).join(' ');
  return Object.hasOwn(commands, two) ? [two, line.slice(2)] : [line[0] ?? '', line.slice(1)];
}

/** Runs the command line; the result is the exit status. */
async function main(line: readonly string[]): Promise<number> {
  const [name, args] = split(line);
  const known = Object.hasOwn(commands, name);
  if (!known && ['--help', '-h', 'help', '--version', '-v'].includes(name)) {
    process.stdout.write(['--version', '-v'].includes(name) ? `${version}\n` : usage);
    return 0;
  }
  if (!known) {
    const hint = name === '' ? '' : `infernode: there is no command '${name}'.${nameHint(name, Object.keys(commands), 'commands')}\n`; // prettier-ignore
    process.stderr.write(hint + usage);
    return 2;
  }
  const command = commands[name] as Command;
  const { values, path } = parsed(command, args);
  if (values['help'] === true) {
    process.stdout.write(helpOf(name, command));
    return 0;
  }
  if (path === undefined) throw new UsageError(`${name} takes one model. infernode ${name} --help says more`);
  if (/^https?:/i.test(path)) throw new UsageError(`${path} is a URL: download it first, and give the file`);
  await command.run(path, values);
  return 0;
}

function parsed({ options }: Command, args: readonly string[]): { values: Values; path: string | undefined } {
  const all = { ...options, help: { type: 'boolean', short: 'h' } } as const;
  try {
    const { values, positionals } = parseArgs({ args: [...args], options: all, allowPositionals: true });
    return { values, path: positionals.length === 1 ? positionals[0] : undefined };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const unknown = code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION' ? /'(--?[^'\s]+)/.exec(message)?.[1] : undefined;
    if (unknown === undefined) throw new UsageError(message);
    const known = Object.keys(all).map((name) => `--${name}`);
    throw new UsageError(`there is no option '${unknown}'.${nameHint(unknown, known, 'options')}`);
  }
}

// A reader may close the pipe before all is written (EPIPE); other errors, as of a full disk, are told.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit();
  process.stderr.write(`infernode: ${error.message}\n`);
  process.exit(1);
});

main(process.argv.slice(2)).then(
  (status) => (process.exitCode = status),
  (error: unknown) => {
    process.stderr.write(`infernode: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = error instanceof UsageError ? 2 : 1;
  },
);
