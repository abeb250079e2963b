import { readFileSync, statSync } from 'node:fs';

import { InferenceSession } from '../index.js';
import type { NativeSessionHandler } from '../session-handler.js';
import { UsageError, type Command } from './command.js';
import { interfaceName, isInterfaceName, modelTypes, writtenBy } from './model-types.js';
import { OutputFile } from './output-file.js';

/** Throws where `out` would be no TypeScript, or is a file that somebody else wrote; devices take anything. */
function checkTarget(out: string, force: boolean): void {
  const there = statSync(out, { throwIfNoEntry: false });
  if (there !== undefined && !there.isFile()) return;
  if (!/\.[cm]?ts$/i.test(out)) throw new UsageError(`--out ${out}: declarations go into a file that ends in .ts`);
  if (force || there === undefined || there.size === 0) return;
  if (readFileSync(out, 'utf8').startsWith(writtenBy)) return;
  throw new UsageError(`${out} is there and was not written by this command: name another file, or give --force`);
}

export const types: Command = {
  summary: "writes TypeScript declarations of a model's inputs and outputs, for InferenceSession.create<NAME>(MODEL)",
  help: `      --out FILE        where to; MODEL with .d.ts in the place of .onnx by default, - for standard output
      --force           replaces a file that this command did not write
      --name NAME       of the interface; by default the file's name in PascalCase
`,
  example: 'infernode types model.onnx --out src/model.d.ts',
  options: { out: { type: 'string' }, force: { type: 'boolean' }, name: { type: 'string' } },
  async run(path, values) {
    const name = (values['name'] as string | undefined) ?? interfaceName(path);
    if (!isInterfaceName(name)) throw new UsageError(`'${name}' is no name of an interface`);
    const out = (values['out'] as string | undefined) ?? `${path.replace(/\.(onnx|ort)$/i, '')}.d.ts`;
    const file = out === '-' ? undefined : new OutputFile(out, path);
    if (file) checkTarget(out, values['force'] === true);
    const session = await InferenceSession.create(path, { graphOptimizationLevel: 'disabled', logSeverityLevel: 3 });
    const { inputs, outputs } = (session.handler as NativeSessionHandler).native;
    const text = modelTypes(name, path.replace(/^.*[/\\]/, ''), inputs, outputs);
    await session.release();
    file?.write(text);
    if (file) process.stderr.write(`wrote ${out}\n`);
    else process.stdout.write(text);
  },
};
