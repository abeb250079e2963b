import { statSync } from 'node:fs';

import { InferenceSession, listSupportedBackends } from '../index.js';
import { printable, report, type Command } from './command.js';

/** What a provider of this build would do with the model. */
interface Claim {
  readonly provider: string;
  readonly nodes?: number;
  readonly of?: number;
  /** Why it cannot start here. */
  readonly reason?: string;
}

async function claimOf(path: string, provider: string): Promise<Claim> {
  try {
    const session = await InferenceSession.create(path, {
      executionProviders: [provider, 'cpu'],
      providerFallback: false,
      logSeverityLevel: 3,
    });
    const placed = session.placement;
    await session.release();
    return { provider, nodes: placed.filter((node) => node.provider === provider).length, of: placed.length };
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'PROVIDER_UNAVAILABLE') throw error;
    return { provider, reason: (error as Error).message };
  }
}

const claimLine = ({ provider, nodes, of, reason }: Claim): string =>
  `  ${provider}: ${reason === undefined ? `takes ${nodes} of ${of} nodes` : printable(reason)}\n`;

export const check: Command = {
  summary: 'says what a model is, what runs of it, and on which providers',
  help: `      --json            for programs
`,
  example: 'infernode check model.onnx',
  options: { json: { type: 'boolean' } },
  async run(path, values) {
    const bytes = statSync(path, { throwIfNoEntry: false })?.size;
    const session = await InferenceSession.create(path, { logSeverityLevel: 3 });
    const { metadata, inputMetadata, outputMetadata } = session;
    const { nodes, memory } = session.graph();
    const dims = inputMetadata.flatMap((info) => (info.isTensor ? info.shape : []));
    const freeDims = [...new Set(dims.filter((dim) => typeof dim === 'string' && dim !== ''))] as string[];
    const text = session.describe();
    await session.release();
    const claims: Claim[] = [];
    for (const { name } of listSupportedBackends()) if (name !== 'cpu') claims.push(await claimOf(path, name));

    const operators: Record<string, number> = {};
    for (const { domain, opType } of nodes) {
      const name = domain === '' ? opType : `${domain}.${opType}`;
      operators[name] = (operators[name] ?? 0) + 1;
    }
    const found = { path, bytes, metadata, inputs: inputMetadata, outputs: outputMetadata, freeDims, operators, memory, providers: claims }; // prettier-ignore
    const free = freeDims.length === 0 ? 'none' : printable(freeDims.join(', '));
    const others = claims.length === 0 ? '' : `Other providers of this build\n${claims.map(claimLine).join('')}`;
    report(values, found, `${text}\nFree dims: ${free}\n${others}`);
  },
};
