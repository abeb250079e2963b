import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

import { InferenceSession } from '../index.js';
import type { NativeSessionHandler } from '../session-handler.js';
import { version } from '../version.js';
import { interfaceName, isInterfaceName, modelTypes } from './model-types.js';

const usage = `usage: infernode types MODEL [--out FILE] [--name NAME]

types   writes TypeScript declarations of a model's inputs and outputs, for InferenceSession.create<NAME>(MODEL)
  --out FILE    where to; MODEL with .d.ts in the place of .onnx by default, - for standard output
  --name NAME   of the interface; by default the file's name in PascalCase

infernode --version   prints the package's version
`;

/** Runs the command line; the result is the exit status. */
async function main(args: readonly string[]): Promise<number> {
  const options = {
    out: { type: 'string' },
    name: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
    version: { type: 'boolean', short: 'v' },
  } as const;
  const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
  const [command, path] = positionals;
  if (values.help) {
    process.stdout.write(usage);
    return 0;
  }
  if (values.version) {
    process.stdout.write(`${version}\n`);
    return 0;
  }
  if (command !== 'types' || path === undefined || positionals.length > 2) {
    process.stderr.write(usage);
    return 2;
  }
  const name = values.name ?? interfaceName(path);
  if (!isInterfaceName(name)) throw new Error(`'${name}' is no name of an interface`);
  const session = await InferenceSession.create(path, { graphOptimizationLevel: 'disabled', logSeverityLevel: 3 });
  const { inputs, outputs } = (session.handler as NativeSessionHandler).native;
  const text = modelTypes(name, path.replace(/^.*[/\\]/, ''), inputs, outputs);
  await session.release();
  const out = values.out ?? `${path.replace(/\.(onnx|ort)$/i, '')}.d.ts`;
  if (out === '-') process.stdout.write(text);
  else {
    writeFileSync(out, text);
    process.stderr.write(`wrote ${out}\n`);
  }
  return 0;
}

main(process.argv.slice(2)).then(
  (status) => (process.exitCode = status),
  (error: unknown) => {
    process.stderr.write(`infernode: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  },
);
