// src-native/session/option_fields.h: SessionOptions and RunOptions, and how their members are called in JavaScript.
import { pascal, schemaPath, simpleTypes, wrapped } from './schema.mjs';

const ofType = { integer: 'std::size_t', boolean: 'bool', string: 'std::string', path: 'std::string' };

/** The C++ type of an option's member; an enumeration of its own where the schema names none. */
const typeOf = ({ name, type, native }) => native.type ?? ofType[type] ?? pascal(name);

/** An enumerator, or a literal where an enumeration of JavaScript is a number or bool here. */
function enumerator(option, index) {
  const name = option.native.values?.[index] ?? `k${pascal(option.values[index])}`;
  return typeOf(option) === 'bool' ? name : `${typeOf(option)}::${name}`;
}

function defaultOfNumber({ name, default: value }) {
  if (value === undefined) throw new Error(`src/options/schema.json: option ${name} has no default`);
  return value;
}

function defaultOf(option) {
  const { type, native } = option;
  if (native.default !== undefined) return ` = ${native.default}`;
  if (type === 'enum') return ` = ${enumerator(option, option.values.indexOf(option.default))}`;
  if (!typeOf(option).startsWith('std::optional') && (type === 'integer' || type === 'boolean'))
    return ` = ${defaultOfNumber(option)}`;
  return '{}';
}

const constant = (option) => `k${pascal(option.name)}Names`;

/** An enumeration's own type, where the schema names none, and how its values are called. */
function names(option) {
  const own = option.native.type === undefined;
  const enumeration = own
    ? [`enum class ${typeOf(option)} { ${option.values.map((value) => `k${pascal(value)}`).join(', ')} };`, '']
    : [];
  const rows = option.values.map((value, index) => `    {"${value}", ${enumerator(option, index)}},`);
  const type = `std::pair<std::string_view, ${typeOf(option)}>`;
  return [...enumeration, `inline constexpr ${type} ${constant(option)}[] = {`, ...rows, '};', ''];
}

function structure(what, options) {
  const members = options.flatMap((option) => [
    ...wrapped(`${option.name}: ${option.doc}`, '  /// '),
    `  ${typeOf(option)} ${option.native.member}${defaultOf(option)};`,
  ]);
  return [`/// Settings of one ${what}. TypeScript has checked types and ranges.`, `struct ${pascal(what)}Options {`, ...members, '};', '']; // prettier-ignore
}

function visitor(what, options) {
  const calls = options
    .filter(({ type }) => simpleTypes.includes(type))
    .map((option) => {
      const rest = option.type === 'enum' ? [constant(option)] : option.native.none !== undefined ? [`Absent{${option.native.none}}`] : []; // prettier-ignore
      return `  visit(${[`"${option.name}"`, `to.${option.native.member}`, ...rest].join(', ')});`;
    });
  return [
    '/// Calls visit(key, member, names of its values | the number that stands for none) for each simple option.',
    'template <class Visit>',
    `void each_option(${pascal(what)}Options& to, Visit&& visit) {`,
    ...calls,
    '}',
    '',
  ];
}

/** The text of the file. */
export function native(schema) {
  const halves = ['session', 'run'].map((what) => [what, schema[what].filter((option) => option.native)]);
  const all = halves.flatMap(([, options]) => options);
  const lines = [
    `// Written by \`npm run docs:options\` from ${schemaPath}: do not edit.`,
    '// clang-format off',
    '#pragma once',
    '',
    '#include "session/option_types.h"',
    '',
    'namespace infernode::session {',
    '',
    ...all.filter(({ type }) => type === 'enum').flatMap(names),
    ...halves.flatMap(([what, options]) => [...structure(what, options), ...visitor(what, options)]),
    '}  // namespace infernode::session',
    '',
  ];
  return lines.join('\n');
}
