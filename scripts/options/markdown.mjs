// docs/options.md: every option with its type, default, meaning and errors.
import { errorsOf, mostOf, schemaPath } from './schema.mjs';

const code = (text) => `\`${text}\``;

function typeOf(option) {
  if (option.type === 'enum') return option.values.map((value) => code(`'${value}'`)).join(', ');
  if (option.type === 'integer') return `integer, 0 to ${mostOf(option)}`;
  return option.type;
}

/** A string is shown as JavaScript has it; '' is no value. */
function defaultOf({ default: value }) {
  if (value === undefined || value === '' || value === -1) return '';
  return code(JSON.stringify(value).replaceAll('"', "'"));
}

const table = (options, columns) =>
  [
    `| ${Object.keys(columns).join(' | ')} |`,
    `| ${Object.keys(columns).map(() => '---').join(' | ')} |`,
    ...options.map((option) => `| ${Object.values(columns).map((cell) => cell(option)).join(' | ')} |`),
  ].join('\n'); // prettier-ignore

const columns = {
  name: ({ name, ours }) => code(name) + (ours ? ' (+)' : ''),
  type: typeOf,
  default: defaultOf,
  meaning: ({ doc }) => doc.replaceAll(/\bdocs\/(\w+)\.md\b/g, '[$1]($1.md)'),
  'a wrong value': (option) => errorsOf(option),
};

/** The text of the file. */
export function markdown(schema) {
  const providers = Object.entries(schema.providers).map(
    ([name, { doc, options }]) =>
      `### ${code(name)}\n\n${doc}\n\n${table(options, { ...columns, default: defaultOf })}`,
  );
  return `# Options

Written by \`npm run docs:options\` from \`${schemaPath}\`, whose rules stand in \`scripts/options/schema.mjs\`. (+) marks what onnxruntime-node does
not have. All errors have a \`code\`: INVALID_ARGUMENT where none is named. A key that is not known is ignored; one that is nearly that of an
option gives one warning: to \`onLog\` or \`env.onLog\`, else as a warning of Node.js, and not where errors alone are logged. A value of \`undefined\` counts as not given.

## Of a session

\`InferenceSession.create(model, options)\` and \`createSync\`.

${table(schema.session, columns)}

## Of a run

\`session.run(feeds, fetches, options)\`, \`runSync\`, and those of \`IoBinding\`.

${table(schema.run, columns)}

## Config entries

What \`extra\` may hold, here as names joined by dots; values are text.

${table(schema.extra, { ...columns, type: ({ type }) => type, 'a wrong value': ({ errors }) => errors ?? 'counts as not given' })}

## Of a provider

Keys of an object of \`executionProviders\` beside its \`name\`. They reach the provider as text, in snake_case.

${providers.join('\n\n')}

## Of the process

${table(schema.env, { ...columns, name: ({ name }) => code(`env.${name}`) })}

Environment variables:

${table(schema.variables, { name: columns.name, meaning: columns.meaning })}
`;
}
