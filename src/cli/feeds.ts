import { Tensor, type InferenceSession } from '../index.js';
import { arrayLength, elementTypeOfName } from '../tensor/element-types.js';
import { zeros } from '../tensor/tensor-data.js';
import { printable, texts, UsageError, wholeNumber, type Command, type Values } from './command.js';

/** Options of the commands that run a model on values of their own making. */
export const feedOptions: Command['options'] = {
  dim: { type: 'string', short: 'f', multiple: true },
  shape: { type: 'string', multiple: true },
  seed: { type: 'string', short: 'S' },
};

export const feedHelp = `  -f, --dim NAME:SIZE   the size of a free dim; by default 1
      --shape NAME:DIMS the dims of an input, as pixels:1,3,224,224
  -S, --seed N          of the floats that inputs hold, from 0 to 1; integers are 0
`;

/** Numbers of 32 bits, the same for the same seed (mulberry32). */
function draws(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
}

/** `NAME:VALUE` of each time that an option is given. */
function pairs(values: Values, option: string, pattern: RegExp, form: string): Map<string, string> {
  return new Map(
    texts(values, option).map((text): [string, string] => {
      const [, name, value] = /^(.+)[:=]([^:=]*)$/.exec(text) ?? [];
      if (name === undefined || value === undefined || !pattern.test(value)) {
        throw new UsageError(`--${option} takes ${form}, not '${text}'`);
      }
      return [name, value];
    }),
  );
}

type TensorInfo = Extract<InferenceSession.ValueMetadata, { isTensor: true }>;

function tensorsOf(session: InferenceSession): readonly TensorInfo[] {
  return session.inputMetadata.map((info) => {
    if (!info.isTensor) throw new Error(`input '${info.name}' is no tensor, and others are not made here`);
    return info;
  });
}

/** The dims of each input, by the command line and, where it says nothing, 1. */
function dimsOf(inputs: readonly TensorInfo[], values: Values): Map<string, readonly number[]> {
  const sizes = pairs(values, 'dim', /^\d{1,10}$/, 'NAME:SIZE');
  const shapes = pairs(values, 'shape', /^(\d{1,10}(,\d{1,10})*)?$/, 'NAME:DIM,DIM,...');
  const symbols = new Set(inputs.flatMap(({ shape }) => shape.filter((dim) => typeof dim === 'string' && dim !== '')));
  const refuse = (what: string, name: string, known: readonly unknown[]): never => {
    throw new UsageError(
      `the model has no ${what} '${name}': it has ${known.length === 0 ? 'none' : known.join(', ')}`,
    );
  };
  for (const name of sizes.keys()) if (!symbols.has(name)) refuse('free dim', name, [...symbols]);
  const names = inputs.map(({ name }) => name);
  for (const name of shapes.keys()) if (!names.includes(name)) refuse('input', name, names);
  const given = (name: string): readonly number[] | undefined => {
    const text = shapes.get(name);
    return text === undefined ? undefined : text === '' ? [] : text.split(',').map(Number);
  };
  for (const { name, shape } of inputs)
    given(name)?.forEach((size, i) => {
      const symbol = shape[i];
      if (typeof symbol === 'string' && !sizes.has(symbol)) sizes.set(symbol, String(size));
    });
  const sizeOf = (dim: number | string): number => (typeof dim === 'number' ? dim : Number(sizes.get(dim) ?? 1));
  return new Map(inputs.map(({ name, shape }) => [name, given(name) ?? shape.map(sizeOf)]));
}

export type Feeds = Readonly<Record<string, Tensor>>;

/** Types and dims of feeds, for people. */
export const feedText = (feeds: Feeds): string =>
  Object.entries(feeds)
    .map(([name, value]) => `${printable(name)} ${value.type}[${value.dims.join(', ')}]`)
    .join(', ');

/** The same for programs. */
export const fedDims = (feeds: Feeds): Record<string, readonly number[]> =>
  Object.fromEntries(Object.entries(feeds).map(([name, value]) => [name, value.dims]));

/** Feeds for every input that must be fed: floats are drawn, all else is 0, false or ''. */
export function feedsFor(session: InferenceSession, values: Values): Feeds {
  const inputs = tensorsOf(session);
  const dims = dimsOf(inputs, values);
  const draw = draws(wholeNumber(values, 'seed', 0, 0));
  return Object.fromEntries(
    inputs.map(({ name, type }) => {
      const size = dims.get(name) as readonly number[];
      try {
        return [name, filled(session, type, size, draw)];
      } catch (error) {
        const what = `input '${name}' of type ${type} and dims ${size.join(', ')}`;
        throw new Error(`${what} cannot be made: ${(error as Error).message}`, { cause: error });
      }
    }),
  );
}

function filled(session: InferenceSession, type: string, dims: readonly number[], draw: () => number): Tensor {
  const length = dims.reduce((product, dim) => product * dim, 1);
  const tensor = (data: unknown): Tensor => new Tensor(type as 'float32', data as Float32Array, dims);
  const upTo1 = (): number => draw() / 2 ** 32;
  if (type === 'float32') return tensor(Float32Array.from({ length }, upTo1));
  if (type === 'float64') return tensor(Float64Array.from({ length }, upTo1));
  // Half an exponent below 1, and the bits behind it: 0.5 to 1.
  if (type === 'float16') return tensor(Uint16Array.from({ length }, () => 0x3800 | (draw() & 0x3ff)));
  const kind = elementTypeOfName(type);
  if (kind?.common) return tensor(zeros(kind, arrayLength(kind, length)));
  return session.allocate(type as Tensor.Type, dims);
}
