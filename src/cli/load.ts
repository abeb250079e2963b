import { InferenceSession } from '../index.js';
import { texts, UsageError, wholeNumber, type Command, type Values } from './command.js';

/** Options of the commands that load a model to run it; the letters are those of onnxruntime_perf_test. */
export const loadOptions: Command['options'] = {
  provider: { type: 'string', short: 'e', multiple: true },
  threads: { type: 'string', short: 'x' },
  level: { type: 'string', short: 'o' },
  precision: { type: 'string' },
};

export const loadHelp = `  -e, --provider NAME   where to run, in order of preference: cpu, cuda, ...; by default cpu
  -x, --threads N       that take part in one operator; 0, the default: all
  -o, --level LEVEL     of the optimizer: disabled, basic, extended, layout or all (0, 1, 2, 3, 99)
      --precision NAME  of float32 products: highest, high or medium
`;

const levels = { '0': 'disabled', '1': 'basic', '2': 'extended', '3': 'layout', '99': 'all' } as const;

/** The session options that the command line stands for; `create` says what is wrong with them. */
export function sessionOptions(values: Values): InferenceSession.SessionOptions {
  const providers = texts(values, 'provider');
  const level = values['level'] as string | undefined;
  const options: Record<string, unknown> = {
    executionProviders: providers.length > 0 ? [...providers] : undefined,
    providerFallback: providers.length > 0 ? false : undefined,
    intraOpNumThreads: wholeNumber(values, 'threads', 0, 0),
    graphOptimizationLevel: level === undefined ? undefined : ((levels as Record<string, string>)[level] ?? level),
    float32MatmulPrecision: values['precision'],
  };
  return options;
}

/** Loads the model; answers the session and how many milliseconds that took. */
export async function load(
  path: string,
  options: InferenceSession.SessionOptions,
): Promise<readonly [InferenceSession, number]> {
  const start = performance.now();
  const session = await InferenceSession.create(path, options).catch((error: unknown) => {
    const wrong = error instanceof TypeError || error instanceof RangeError;
    throw wrong ? new UsageError(error.message) : error;
  });
  return [session, performance.now() - start];
}
