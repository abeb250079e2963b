import { typeError } from '../errors.js';
import { nameHint } from '../hints.js';
import { describe } from '../tensor/tensor-data.js';

/** An option of a tool: everything that the API, the command line and the guide know of it. */
export interface Option<T = unknown> {
  readonly kind: 'flag' | 'choice' | 'names' | 'number' | 'axes';
  readonly fallback: T;
  /** What it means, as half a sentence. */
  readonly help: string;
  /** All values that it, or an entry of a list, may have; empty: any. */
  readonly choices: readonly (string | number)[];
  /** The least and the largest value of a number; `whole`: it has no fraction. */
  readonly bounds?: readonly [least: number, largest: number, whole?: 'whole'];
}

export type Table = Readonly<Record<string, Option>>;

/** What a caller gives of a table's options. */
export type OptionsOf<T extends Table> = { readonly [K in keyof T]?: T[K] extends Option<infer V> ? V : never };

/** All of them as the engine takes them. */
export type Settings = Record<string, boolean | number | string | readonly string[] | Float64Array>;

/** `fallback` null: what it is then depends on others. */
export const flag = (help: string, fallback: boolean | null = false): Option<boolean> => ({
  kind: 'flag',
  fallback: fallback as boolean,
  help,
  choices: [],
});

export const choice = <const T extends string | number>(
  choices: readonly T[],
  fallback: NoInfer<T>,
  help: string,
): Option<T> => ({ kind: 'choice', fallback, help, choices });

export const names = <T extends string = string>(
  help: string,
  fallback: readonly T[] = [],
  choices: readonly T[] = [],
): Option<readonly T[]> => ({ kind: 'names', fallback, help, choices });

/** `fallback` null: it may be left out. */
export const number = (
  help: string,
  fallback: number | null,
  bounds: NonNullable<Option['bounds']>,
): Option<number> => ({ kind: 'number', fallback: fallback as number, help, choices: [], bounds });

/** An axis for each operator that is named. */
export const axes = (help: string): Option<Readonly<Record<string, number>>> => ({
  kind: 'axes',
  fallback: {},
  help,
  choices: [],
});

const quoted = (value: unknown): string => (typeof value === 'string' ? `'${value}'` : String(value));
const listed = (values: readonly unknown[]): string => values.map(quoted).join(', ');

/** Throws TypeError where the option cannot have the value. `what` ("quantizeWeights options") begins the message. */
function checkValue(what: string, name: string, option: Option, value: unknown): void {
  const wrong = (expected: string, given: unknown = value): never => {
    const actual = typeof given === 'string' ? `'${given}'` : typeof given === 'number' ? `${given}` : describe(given);
    throw typeError(`Invalid ${what}: '${name}' must be ${expected}, got ${actual}.`, { expected, actual });
  };
  const { kind, choices, bounds } = option;
  if (kind === 'flag' && typeof value !== 'boolean') wrong('a boolean');
  if (kind === 'choice' && !choices.includes(value as string)) wrong(`one of ${listed(choices)}`);
  if (kind === 'number') {
    const [least, largest, whole] = bounds as NonNullable<Option['bounds']>;
    const fits = typeof value === 'number' && value >= least && value <= largest && (!whole || Number.isInteger(value));
    if (!fits) wrong(`a ${whole ? 'whole ' : ''}number from ${least} to ${largest}`);
  }
  if (kind === 'axes') {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) wrong('an object of axes by operators');
    for (const axis of Object.values(value as object)) {
      if (!Number.isInteger(axis)) wrong('an object of axes by operators', axis);
    }
  }
  if (kind !== 'names') return;
  if (!Array.isArray(value)) wrong('an array of strings');
  for (const item of value as unknown[]) {
    if (typeof item !== 'string') wrong('an array of strings', item);
    if (choices.length > 0 && !choices.includes(item as string)) wrong(`an array of ${listed(choices)}`, item);
  }
}

/** The settings that a caller's own keys stand for. Throws TypeError for wrong values, and for names that are no option. */
export function readOptions(table: Table, given: object, what: string): Settings {
  const settings = Object.create(null) as Settings; // the engine reads what is inherited, too
  for (const [name, { fallback }] of Object.entries(table)) settings[name] = fallback as Settings[string];
  for (const [name, value] of Object.entries(given) as [string, unknown][]) {
    const option = Object.hasOwn(table, name) ? table[name] : undefined;
    if (option === undefined) {
      throw typeError(`Invalid ${what}: there is no option '${name}'.${nameHint(name, Object.keys(table), 'options')}`);
    }
    if (value === undefined) continue;
    checkValue(what, name, option, value);
    settings[name] = value as Settings[string];
  }
  return settings;
}

/** An option's name on the command line: 'blockSize' is 'block-size', 'AddQDQPairToWeight' 'add-qdq-pair-to-weight'. */
export const flagName = (name: string): string =>
  name.replace(/[a-z\d](?=[A-Z])|[A-Z](?=[A-Z][a-z])/g, '$&-').toLowerCase();

/** Whether the command line gives it a value: a flag that is not off by default has one, true or false. */
export const takesText = ({ kind, fallback }: Option): boolean => kind !== 'flag' || fallback !== false;

const valueName = (option: Option): string =>
  !takesText(option)
    ? ''
    : { flag: ' true|false', names: ' NAME', axes: ' OPERATOR:AXIS', number: ' N', choice: ' X' }[option.kind];

/** What follows an option's help: its values, and what it is where it is not given. */
function valuesOf({ kind, choices, fallback }: Option): string {
  const own = Array.isArray(fallback) ? fallback.join(', ') : fallback;
  const preset = (kind === 'flag' && fallback !== true) || kind === 'axes' || own === null ? '' : own;
  const parts = [choices.join(', '), preset === '' ? '' : `by default ${String(preset)}`].filter((part) => part !== '');
  return parts.length === 0 ? '' : ` (${parts.join('; ')})`;
}

/** A line of `--help`: an option as it is given, and what it means. */
export const helpLine = (given: string, help: string): string => `      --${given.padEnd(34)} ${help}\n`;

/** The options' lines of `--help`. */
export const helpLines = (table: Table): string =>
  Object.entries(table)
    .map(([name, option]) => helpLine(flagName(name) + valueName(option), option.help + valuesOf(option)))
    .join('');

/** The options' rows in the guide. */
export const tableRows = (table: Table): string =>
  [
    '| option | on the command line | meaning |',
    '| --- | --- | --- |',
    ...Object.entries(table).map(
      ([name, option]) => `| \`${name}\` | \`--${flagName(name)}\` | ${option.help}${valuesOf(option)} |`,
    ),
    '',
  ].join('\n');

/** Axes that are given as MatMul:1. */
const axesOfTexts = (texts: readonly string[]): Record<string, unknown> =>
  Object.fromEntries(
    texts
      .flatMap((text) => text.split(','))
      .map((text) => {
        const [, operator, axis] = /^(\w+):(-?\d{1,3})$/.exec(text) ?? [];
        return operator === undefined ? [text, undefined] : [operator, Number(axis)];
      }),
  );

/** Whether it may be given more than once on the command line. */
export const isRepeated = ({ kind }: Option): boolean => kind === 'names' || kind === 'axes';

/** The options that texts of the command line stand for; `readOptions` says what is wrong with them. */
export function optionsOfTexts(table: Table, values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const [name, { kind, choices }] of Object.entries(table)) {
    const value = values[flagName(name)] as string | boolean | readonly string[] | undefined;
    if (value === undefined) continue;
    if (kind === 'choice') found[name] = choices.find((known) => String(known) === value) ?? (value as string);
    else if (kind === 'names') found[name] = (value as readonly string[]).flatMap((text) => text.split(','));
    else if (kind === 'axes') found[name] = axesOfTexts(value as readonly string[]);
    else if (kind === 'number') found[name] = value === '' || Number.isNaN(Number(value)) ? value : Number(value);
    else found[name] = value === 'true' ? true : value === 'false' ? false : value;
  }
  return found;
}
