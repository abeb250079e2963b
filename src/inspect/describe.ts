import type { InferenceSession as Common } from 'onnxruntime-common';

import type { NativeMetadata } from '../native.js';
import type { SessionGraph } from './graph.js';

interface Described {
  readonly metadata: NativeMetadata;
  readonly inputMetadata: readonly Common.ValueMetadata[];
  readonly outputMetadata: readonly Common.ValueMetadata[];
}

/** What a session is, for people: the model, its inputs and outputs, operators by provider, memory. */
export function describeSession({ metadata, inputMetadata, outputMetadata }: Described, graph: SessionGraph): string {
  const { producerName, producerVersion, graphName, irVersion, opsets } = metadata;
  const producer = `${producerName} ${producerVersion}`.trim();
  const sets = Object.entries(opsets).map(([domain, version]) => `${domain} ${version}`);
  const { weightBytes, keptBytes, arenaBytes } = graph.memory;
  const lines = [
    `Model '${printable(graphName)}'${producer === '' ? '' : ` by ${printable(producer)}`}, IR version ${irVersion}, operator sets ${sets.join(', ')}`,
    'Inputs',
    ...inputMetadata.map(valueLine),
    'Outputs',
    ...outputMetadata.map(valueLine),
    `Nodes that run: ${graph.nodes.length}`,
    ...operatorLines(graph),
    'Memory',
    `  weights and other constants: ${size(weightBytes)}`,
    `  kept for the next run: ${size(keptBytes)}`,
    `  intermediate values of the last shapes: ${arenaBytes === 0 ? 'not known before a run' : size(arenaBytes)}`,
  ];
  return lines.join('\n');
}

function valueLine(value: Common.ValueMetadata): string {
  if (!value.isTensor) return `  ${printable(value.name)}: no tensor`;
  return `  ${printable(value.name)}: ${value.type}[${value.shape.map((dim) => (dim === '' ? '?' : printable(String(dim)))).join(', ')}]`;
}

/** How many nodes there are of each operator and provider, most first. */
function operatorLines({ nodes }: SessionGraph): string[] {
  const counts = new Map<string, number>();
  for (const { domain, opType, provider } of nodes) {
    const key = `${domain === '' ? '' : `${domain}.`}${opType} on ${provider}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return [...counts].sort(([, a], [, b]) => b - a).map(([key, count]) => `  ${count} ${printable(key)}`);
}

/** Without characters that a terminal would obey: names are the model's. */
const printable = (text: string): string => text.replace(/\p{Cc}/gu, '?');

function size(bytes: number): string {
  const units = ['bytes', 'KB', 'MB', 'GB'];
  const power = bytes < 1000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  return `${(bytes / 1000 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`;
}
