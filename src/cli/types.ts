import { writeFileSync } from 'node:fs';

import { InferenceSession } from '../index.js';
import type { NativeSessionHandler } from '../session-handler.js';
import type { Command } from './command.js';
import { interfaceName, isInterfaceName, modelTypes } from './model-types.js';

export const types: Command = {
  summary: "writes TypeScript declarations of a model's inputs and outputs, for InferenceSession.create<NAME>(MODEL)",
  help: `      --out FILE        where to; MODEL with .d.ts in the place of .onnx by default, - for standard output
      --name NAME       of the interface; by default the file's name in PascalCase
`,
  example: 'infernode types model.onnx --out src/model.d.ts',
  options: { out: { type: 'string' }, name: { type: 'string' } },
  async run(path, values) {
    const name = (values['name'] as string | undefined) ?? interfaceName(path);
    if (!isInterfaceName(name)) throw new Error(`'${name}' is no name of an interface`);
    const session = await InferenceSession.create(path, { graphOptimizationLevel: 'disabled', logSeverityLevel: 3 });
    const { inputs, outputs } = (session.handler as NativeSessionHandler).native;
    const text = modelTypes(name, path.replace(/^.*[/\\]/, ''), inputs, outputs);
    await session.release();
    const out = (values['out'] as string | undefined) ?? `${path.replace(/\.(onnx|ort)$/i, '')}.d.ts`;
    if (out === '-') process.stdout.write(text);
    else {
      writeFileSync(out, text);
      process.stderr.write(`wrote ${out}\n`);
    }
  },
};
