// What is written from the schema of the options is up to date, and the schema has what the sources read: config entries,
// environment variables, options of providers.
import { outputs } from '../options/outputs.mjs';
import { loadSchema, schemaPath } from '../options/schema.mjs';

const withoutComments = (text) => text.replace(/\/\/.*$/gm, '');

/** Places of what `pattern` finds in the files that `chosen` takes: name -> path. */
function found(files, read, chosen, pattern) {
  const names = new Map();
  for (const path of files.filter((file) => chosen.test(file))) {
    for (const [, name] of withoutComments(read(path)).matchAll(pattern)) names.set(name, path);
  }
  return names;
}

function compare(what, used, known) {
  const names = new Set(known.map(({ name }) => name));
  return [
    ...[...used].filter(([name]) => !names.has(name)).map(([name, path]) => `${path}: ${schemaPath} lacks the ${what} ${name}`),
    ...[...names].filter((name) => !used.has(name)).map((name) => `${schemaPath}: nothing reads the ${what} ${name}`),
  ]; // prettier-ignore
}

const snakeCase = (name) => name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase();

function unreadProviderOptions(files, read, providers) {
  return Object.entries(providers).flatMap(([provider, { options }]) => {
    const sources = files
      .filter((path) => path.startsWith(`providers/${provider}/`) && path.endsWith('.cpp'))
      .map(read);
    if (sources.length === 0) return [];
    return options
      .filter(({ name }) => !sources.some((text) => text.includes(`"${snakeCase(name)}"`)))
      .map(({ name }) => `${schemaPath}: nothing in providers/${provider}/ reads "${snakeCase(name)}"`);
  });
}

export async function check(files, read) {
  if (!files.includes(schemaPath)) return [];
  const schema = loadSchema(read);
  const stale = Object.entries(await outputs(schema))
    .filter(([path, text]) => !files.includes(path) || Buffer.from(read(path), 'latin1').toString() !== text)
    .map(([path]) => `${path}: not what ${schemaPath} says: run npm run docs:options`);
  const entries = found(files, read, /^src-native\/.*\.(cpp|h)$/, /"((?:session|optimization|memory)\.[a-z_.]+)"/g);
  const variables = new Map([
    ...found(files, read, /^(src-native|providers)\/.*\.(cpp|h)$/, /\bgetenv\("(\w+)"\)/g),
    ...found(files, read, /^src\/.*\.ts$/, /\bprocess\.env\['(\w+)'\]/g),
  ]);
  return [
    ...stale,
    ...compare('config entry', entries, schema.extra),
    ...compare('environment variable', variables, schema.variables),
    ...unreadProviderOptions(files, read, schema.providers),
  ];
}
