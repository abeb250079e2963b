// How src/ becomes the files of dist/ that Node.js loads: index.cjs, and later.cjs beside it.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { at, filesBelow, root } from './project.mjs';

/**
 * Files and folders of src/ that many programs do without: later.cjs, which is read when one of their functions is called
 * first. In index.cjs they would prolong every `require`. They give the others functions and types, nothing else.
 */
const atFirstUse = [
  'batching/',
  'file-url.ts',
  'hints.ts',
  'image/',
  'inspect/',
  'load-failure.ts',
  'missing-binary.ts',
  'options/nearest-name.ts',
  'options/strict-reader.ts',
  'profile-summary.ts',
  'read-model.ts',
  'run/foreign-run.ts',
  'run/missing-input.ts',
  'run/stray-feeds.ts',
  'shared-session.ts',
];
const nameOf = (path) => relative(at('src'), path).replaceAll('\\', '/');
const isLater = (path) => atFirstUse.some((name) => nameOf(path).startsWith(name));

const options = {
  absWorkingDir: root,
  bundle: true,
  platform: 'node',
  target: 'node20',
  packages: 'external',
  logLevel: 'warning',
};

const commonPath = at('src', 'start-up', 'common.ts');

/** In the bundle, src/start-up/common.ts has what others take of onnxruntime-common. */
export const common = {
  name: 'onnxruntime-common',
  setup(build) {
    build.onResolve({ filter: /^onnxruntime-common$|\/create-by-table\.js$/ }, ({ importer }) =>
      importer === commonPath ? null : { path: commonPath },
    );
  },
};

/** The file of src/ that an import of another names. */
const imported = ({ path, resolveDir }) => join(resolveDir, path).replace(/\.js$/, '.ts');

/** The names that later files import from those of index.cjs, by file. */
function namesOfMain(files) {
  const names = new Map();
  for (const file of files) {
    const imports = readFileSync(file, 'utf8').matchAll(/^import {([^}]*)} from '([^']+)';/gm);
    for (const [, list, path] of imports) {
      const from = path === 'onnxruntime-common' ? commonPath : imported({ path, resolveDir: dirname(file) });
      if (path.startsWith('node:') || isLater(from)) continue;
      const values = list.split(',').map((name) => name.trim()).filter((name) => name !== '' && !name.startsWith('type ')); // prettier-ignore
      if (values.length > 0) names.set(from, new Set([...(names.get(from) ?? []), ...values.map((name) => name.split(' ')[0])])); // prettier-ignore
    }
  }
  return names;
}

/** In later.cjs: what index.cjs has comes in `parts`. */
const partsOfMain = (names) => ({
  name: 'parts of index.cjs',
  setup(build) {
    const part = (path) => ({ path, namespace: 'part' });
    build.onResolve({ filter: /^onnxruntime-common$/ }, () => part(commonPath));
    build.onResolve({ filter: /^\./ }, (args) => (isLater(imported(args)) ? null : part(imported(args))));
    build.onLoad({ filter: /^/, namespace: 'part' }, ({ path }) => ({
      contents: `export const { ${[...names.get(path)].join(', ')} } = parts[${JSON.stringify(nameOf(path))}];`,
    }));
  },
});

/** Functions that a file gives the others. */
const functionsIn = (path) => [
  ...new Set([...readFileSync(path, 'utf8').matchAll(/^export (?:async )?function (\w+)/gm)].map(([, name]) => name)),
];

/** In index.cjs: a function of a file that comes later is a call of later.cjs, to which `names` are given. */
const callsOfLater = (names) => ({
  name: 'calls of later.cjs',
  setup(build) {
    const made = (path) => ({ path, namespace: 'made' });
    const own = (list, as, i) => [...list].map((name) => `${name}${as}${name}${i}`).join(', ');
    const write = (path, resolveDir, ...lines) =>
      build.onLoad({ filter: path, namespace: 'made' }, (file) => ({
        contents: lines.flatMap((line) => (typeof line === 'function' ? line(file) : line)).join('\n'),
        resolveDir,
      }));
    build.onResolve({ filter: /^(later|shared)$/ }, ({ path }) => made(path));
    build.onResolve({ filter: /^\.\/later\.cjs$/ }, ({ path }) => ({ path, external: true }));
    build.onResolve({ filter: /^\./ }, (args) => (isLater(imported(args)) ? made(nameOf(imported(args))) : null));
    write(/\.ts$/, root, `import { later } from 'later';`, ({ path }) =>
      functionsIn(at('src', path)).map((name) => `export const ${name} = (...given) => later().${name}(...given);`),
    );
    write(
      /^later$/,
      root,
      'let parts, loaded;',
      'export const share = (given) => { parts = given; };',
      `export const later = () => (loaded ??= require('./later.cjs')(parts()));`,
    );
    write(
      /^shared$/,
      at('src'),
      `import { share } from 'later';`,
      ...[...names].map(([path, list], i) => `import { ${own(list, ' as ', i)} } from ${JSON.stringify(path)};`),
      `share(() => ({`,
      ...[...names].map(([path, list], i) => `${JSON.stringify(nameOf(path))}: { ${own(list, ': ', i)} },`),
      `}));`,
    );
  },
});

/**
 * esbuild's own helper goes through an object by `for (... in ...)`, which finds what a program has put on
 * Object.prototype, too: here it sees own keys alone.
 */
const ownKeys = {
  name: 'own keys',
  setup(build) {
    build.onEnd(({ errors }) => {
      if (errors.length > 0) return;
      const file = resolve(root, build.initialOptions.outfile);
      const text = readFileSync(file, 'utf8');
      writeFileSync(file, text.replaceAll('for (var name in all)', 'for (var name of Object.keys(all))'));
    });
  },
};

/** Says what to do where a bundler put the file into an ES module: what follows needs CommonJS. */
const bundled = `if (typeof __filename === 'undefined')
  throw Object.assign(new Error("infernode was bundled into an ES module, where it cannot find its binary: have it left out of the bundle (esbuild --external:infernode; docs/bundlers.md has the others)."), { code: 'NO_BINARY' });`;

/** Writes src/ as the file that `require` loads, and later.cjs beside it. */
export async function bundle(outfile = 'dist/index.cjs', plugins = [common]) {
  const { build } = await import('esbuild');
  const files = filesBelow(at('src')).filter((path) => path.endsWith('.ts') && isLater(path));
  const names = namesOfMain(files);
  const functions = files.map((path) => `export { ${functionsIn(path).join(', ')} } from ${JSON.stringify(path)};`);
  await build({
    ...options,
    stdin: { contents: functions.join('\n'), resolveDir: root },
    outfile: join(dirname(outfile), 'later.cjs'),
    format: 'cjs', // any other hides `require` from bundlers
    sourcemap: true,
    banner: { js: `'use strict';\nmodule.exports = (parts) => {\nconst module = {};` },
    footer: { js: 'return module.exports;\n};' },
    plugins: [partsOfMain(names), ownKeys],
  });
  await build({
    ...options,
    stdin: {
      contents: `import './start-up/early-load.js';\nimport 'shared';\nexport * from './index.js';`,
      resolveDir: at('src'),
    },
    outfile,
    format: 'cjs',
    sourcemap: true,
    banner: { js: `'use strict';\n${bundled}` },
    plugins: [...plugins, callsOfLater(names), ownKeys],
  });
}

/** Other files of the package, which the command and further entries require rather than hold. */
const ownPackage = {
  name: 'own package',
  setup(build) {
    build.onResolve({ filter: /^(\.\.\/)+(index|quantization)\.js$/ }, ({ path }) => ({
      path: path.replace(/^[./]+/, './').replace('.js', '.cjs'),
      external: true,
    }));
  },
};

/** Entry points beside the main one: `infernode/<name>` is src/<name>.ts. */
export const furtherEntries = ['quantization'];

/** Writes the command `infernode` and the further entries. */
export async function bundleOthers() {
  const { build } = await import('esbuild');
  const write = (entry, outfile, banner) =>
    build({
      ...options,
      entryPoints: [entry],
      outfile,
      format: 'cjs',
      banner: { js: banner },
      plugins: [ownPackage, ownKeys],
    });
  await write('src/cli/main.ts', 'dist/infernode.cjs', '#!/usr/bin/env node');
  for (const name of furtherEntries) await write(`src/${name}.ts`, `dist/${name}.cjs`, `'use strict';`);
}
