import type { NativeGraph, NativeValueInfo } from '../native.js';
import { elementTypeOfCode } from '../tensor/element-types.js';

/** A value that flows between nodes. */
export interface GraphValue {
  /** As nodes name it among their inputs and outputs. */
  readonly name: string;
  /** 'float32', ..., 'sequence', 'map', 'optional', 'sparse', or 'unknown'. */
  readonly type: string;
  /** Free dims are names, '' without one; null where the rank is unknown or there are no dims. */
  readonly shape: readonly (number | string)[] | null;
  /** Of a constant that runs read as it is: what kernels packed is not among these. */
  readonly constantBytes: number | undefined;
}

/** What a node takes, in bytes. */
export interface NodeMemory {
  /** Of its outputs, by the shapes of the last run; 0 before one, where that is unknown, and for views of an input. */
  readonly estimatedBytes: number;
  /** Of its outputs and, at once beside them, of scratch: the most that a run with a profile measured. */
  readonly measured: { readonly outputBytes: number; readonly scratchBytes: number } | undefined;
}

/** A node of the graph as it runs: optimized, in the order of its steps. */
export interface GraphNode {
  /** '' where it has none. */
  readonly name: string;
  /** '' is ONNX's own. */
  readonly domain: string;
  /** The operator; one that fusions made need not be ONNX's own. */
  readonly opType: string;
  /** Where it runs: 'cpu', 'cuda', ... */
  readonly provider: string;
  /** By name; null for one that is left out. */
  readonly inputs: readonly (string | null)[];
  /** By name; null for one that the node does not give. */
  readonly outputs: readonly (string | null)[];
  /** Names of the model's nodes that it was made from; empty where the model has it as it is. */
  readonly madeFrom: readonly string[];
  /** What it takes in a run. */
  readonly memory: NodeMemory;
}

/** What a session's host memory is for, in bytes. */
export interface SessionMemory {
  /** Measured: weights, packed or not, and other constants. */
  readonly weightBytes: number;
  /** Measured: what runs have left for the next. */
  readonly keptBytes: number;
  /** Estimated: what the intermediate values of the last shapes need together; 0 before a run, or where that is unknown. */
  readonly arenaBytes: number;
}

/** What `session.graph()` returns. */
export interface SessionGraph {
  /** In the order in which they run. */
  readonly nodes: readonly GraphNode[];
  /** By name: inputs, outputs, constants and what lies between. */
  readonly values: ReadonlyMap<string, GraphValue>;
  /** What the session holds on the host. */
  readonly memory: SessionMemory;
}

/** The graph that the addon describes by ids. */
export function readGraph(native: NativeGraph): SessionGraph {
  const { nodes, values, constantBytes, weightBytes, keptBytes, arenaBytes } = native;
  const name = (id: number): string | null => values[id]?.name ?? null;
  const used = new Set(nodes.flatMap(({ inputs, outputs }) => [...inputs, ...outputs]));
  const entries = values.flatMap((info, id): [string, GraphValue][] =>
    used.has(id) ? [[info.name, valueOf(info, constantBytes[id] ?? -1)]] : [],
  );
  return {
    nodes: nodes.map(({ inputs, outputs, estimatedBytes, outputBytes, scratchBytes, ...node }) => ({
      ...node,
      inputs: inputs.map(name),
      outputs: outputs.map(name),
      memory: { estimatedBytes, measured: outputBytes < 0 ? undefined : { outputBytes, scratchBytes } },
    })),
    values: new Map(entries),
    memory: { weightBytes, keptBytes, arenaBytes },
  };
}

function valueOf({ name, kind, optional, elementType, shape }: NativeValueInfo, bytes: number): GraphValue {
  const type = optional ? 'optional' : kind === 'tensor' ? (elementTypeOfCode(elementType)?.name ?? 'unknown') : kind;
  return { name, type, shape, constantBytes: bytes < 0 ? undefined : bytes };
}
