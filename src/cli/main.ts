import { parseArgs } from 'node:util';

import { version } from '../version.js';
import { check } from './check.js';
import { UsageError, type Command, type Values } from './command.js';
import { perf } from './perf.js';
import { profile } from './profile.js';
import { types } from './types.js';

const commands: Readonly<Record<string, Command>> = { check, perf, profile, types };

const usage = `usage: infernode COMMAND MODEL [options]

${Object.entries(commands)
  .map(([name, { summary }]) => `${name.padEnd(9)} ${summary}`)
  .join('\n')}

infernode COMMAND --help   says which options there are
infernode --version        prints the package's version
`;

const helpOf = (name: string, { summary, help, example }: Command): string =>
  `usage: infernode ${name} MODEL [options]\n\n${summary}\n${help}\nfor example: ${example}\n`;

/** Runs the command line; the result is the exit status. */
async function main([name = '', ...args]: readonly string[]): Promise<number> {
  const known = Object.hasOwn(commands, name);
  if (!known && ['--help', '-h', 'help', '--version', '-v'].includes(name)) {
    process.stdout.write(['--version', '-v'].includes(name) ? `${version}\n` : usage);
    return 0;
  }
  if (!known) {
    process.stderr.write(usage);
    return 2;
  }
  const command = commands[name] as Command;
  const { values, path } = parsed(command, args);
  if (values['help'] === true) {
    process.stdout.write(helpOf(name, command));
    return 0;
  }
  if (path === undefined) throw new UsageError(`${name} takes one model. infernode ${name} --help says more`);
  await command.run(path, values);
  return 0;
}

function parsed({ options }: Command, args: readonly string[]): { values: Values; path: string | undefined } {
  const all = { ...options, help: { type: 'boolean', short: 'h' } } as const;
  try {
    const { values, positionals } = parseArgs({ args: [...args], options: all, allowPositionals: true });
    return { values, path: positionals.length === 1 ? positionals[0] : undefined };
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

main(process.argv.slice(2)).then(
  (status) => (process.exitCode = status),
  (error: unknown) => {
    process.stderr.write(`infernode: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = error instanceof UsageError ? 2 : 1;
  },
);
