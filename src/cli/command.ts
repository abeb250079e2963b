import type { ParseArgsConfig } from 'node:util';

/** The options that were given, by name. */
export type Values = Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>;

/** A subcommand of `infernode` over one model. */
export interface Command {
  /** What it does, in a line. */
  readonly summary: string;
  /** Its options, a line each, as `--help` has them. */
  readonly help: string;
  readonly example: string;
  readonly options: NonNullable<ParseArgsConfig['options']>;
  run(path: string, values: Values): Promise<void>;
}

/** A mistake in the command line. */
export class UsageError extends Error {}

/** A whole number from `least` to `most`; `otherwise` where the option is not given. */
export function wholeNumber(
  values: Values,
  name: string,
  least: number,
  otherwise: number,
  most = 999_999_999,
): number {
  const text = values[name];
  if (typeof text !== 'string') return otherwise;
  if (!/^\d{1,9}$/.test(text) || Number(text) < least || Number(text) > most) {
    throw new UsageError(`--${name} takes a whole number from ${least} to ${most}, not '${text}'`);
  }
  return Number(text);
}

/** The texts of an option that may be given more than once. */
export function texts(values: Values, name: string): readonly string[] {
  const given = values[name];
  return Array.isArray(given) ? (given as string[]) : [];
}

/** Without characters that a terminal would obey: names are the model's. */
export const printable = (text: string): string => text.replace(/\p{Cc}/gu, '?');

/** Rows as columns: the first at the left, the others, which are numbers, at the right. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  const cell = (text: string, column: number): string =>
    column === 0 ? text.padEnd(widths[0] ?? 0) : text.padStart(widths[column] ?? 0);
  return rows.map((row) => `  ${row.map(cell).join('  ')}\n`).join('');
}

/** A number of milliseconds with three digits that count. */
export const milliseconds = (value: number): string => (value >= 100 ? value.toFixed(0) : value.toPrecision(3));

/** Writes what was found: as JSON, or as the text for people. */
export function report(values: Values, found: object, text: string): void {
  process.stdout.write(values['json'] === true ? `${JSON.stringify(found, null, 2)}\n` : text);
}
