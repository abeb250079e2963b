// src/options/generated.ts: keys, types and readers of the options.
import { format } from 'prettier';
import { errorsOf, isRead, pascal, schemaPath, wrapped } from './schema.mjs';

const quoted = (value) => JSON.stringify(value);

function typeOf({ type, values }) {
  switch (type) {
    case 'integer':
      return 'number';
    case 'path':
      return 'string';
    case 'enum':
      return values.map(quoted).join(' | ');
    case 'string or strings':
      return 'string | readonly string[]';
    default:
      return type;
  }
}

function member(option) {
  const text = [option.doc];
  if (option.default !== undefined && option.default !== '')
    text.push(`Default: ${quoted(option.default).replaceAll('"', "'")}.`);
  const errors = errorsOf(option);
  return `/** ${text.join(' ')}${errors === 'none' ? '' : ` Throws ${errors}.`} */\n${option.name}?: ${typeOf(option)};`;
}

function reading(option) {
  const { name, type, values } = option;
  const args = [quoted(name)];
  if (type === 'enum') args.push(quoted(values));
  args.push(quoted(option.default));
  if (type === 'integer' && option.max !== undefined) args.push(option.max);
  return `${name}: reader.${type === 'enum' ? 'oneOf' : type}(${args.join(', ')}),`;
}

function half(what, options) {
  const read = options.filter(isRead);
  const title = pascal(what);
  return `
    /** Every key that the options of a ${what} may have. */
    export const ${what}OptionKeys: readonly string[] = ${quoted(options.map(({ name }) => name))};

    /** Options of a ${what} that onnxruntime-common does not declare. */
    export interface Own${title}Options { ${options
      .filter(({ ours }) => ours)
      .map(member)
      .join('\n')} }

    /** Options of a ${what} as the addon takes them, but those that are read by hand. */
    export interface Simple${title}Options { ${read.map((option) => `${option.name}: ${typeOf(option)};`).join('\n')} }

    /** Reads those. Throws TypeError and RangeError for wrong values, in the order of the schema. */
    export function readSimple${title}Options(reader: OptionReader): Simple${title}Options {
      return { ${read.map(reading).join('\n')} };
    }
  `;
}

const keysOf = (providers) =>
  Object.fromEntries(Object.entries(providers).map(([name, { options }]) => [name, options.map((each) => each.name)]));

/** The text of the file. */
export async function typescript(schema) {
  const providers = Object.entries(schema.providers).flatMap(([name, { doc, options }]) => {
    const ours = options.filter((option) => option.ours);
    if (ours.length === 0) return [];
    return `
      /** ${doc} */
      export interface ${pascal(name)}ExecutionProviderOption {
/** Names the provider. */
readonly name: ${quoted(name)};
${ours.map(member).join('\n')} }
    `;
  });
  const ours = Object.keys(schema.providers).filter((name) =>
    schema.providers[name].options.some((option) => option.ours),
  );
  const union = ours.map((name) => `${pascal(name)}ExecutionProviderOption`).join(' | ') || 'never';
  const source = `// Written by \`npm run docs:options\` from ${schemaPath}: do not edit.
    import type { LoadProgress } from './load-progress.js';
    import type { LogListener } from './log-message.js';
    import type { OptionReader } from './option-reader.js';
    ${half('session', schema.session)}
    ${half('run', schema.run)}
    ${providers.join('\n')}

    /** By provider, the options that it has. */
    export const providerOptionKeys: Readonly<Record<string, readonly string[]>> = ${quoted(keysOf(schema.providers))};

    /** Every setting of \`env\` that this package reads. */
    export const envKeys: readonly string[] = ${quoted(schema.env.map(({ name }) => name))};

    /** Options of providers that onnxruntime-common does not declare. */
    export type OwnProviderOption = ${union};`;
  return wrapComments(await format(source, { parser: 'typescript', printWidth: 120, singleQuote: true }));
}

/** Long comments of one line over several. */
const wrapComments = (text) =>
  text.replace(/^( *)\/\*\* (.*) \*\/$/gm, (line, indent, words) => {
    if (line.length <= 120) return line;
    return [`${indent}/**`, ...wrapped(words, `${indent} * `), `${indent} */`].join('\n');
  });
