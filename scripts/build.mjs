// Builds the addon (cmake-js, build/Release/infernode.node) and the TypeScript layer (dist/).
//
// usage: node scripts/build.mjs [--native] [--ts] [--tests]
//   --native, --ts   only that part
//   --tests          the native tests as well
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { bundle, bundleOthers, furtherEntries } from './lib/bundle.mjs';
import { cmakeBuild, mustNode } from './lib/live.mjs';
import { at, bin, filesBelow, fingerprint, isMain, root, runMain, say, unlessDone } from './lib/project.mjs';
import { hasDoctest, setup } from './setup.mjs';

const cmakeJs = bin('cmake-js/bin/cmake-js');

/** Configures the addon's build, where that was not done with these tools and options. */
export async function configureNative() {
  const args = ['configure', '--log-level', 'warn', '--CDINFERNODE_BUILD_TESTS=ON'];
  if (process.env.CI) args.push('--CDINFERNODE_WERROR=ON');
  const lock = at('package-lock.json');
  const print = fingerprint([lock], root, args, hasDoctest(), process.env.CC, process.env.CXX, process.version);
  const cache = at('build', 'CMakeCache.txt');
  const stamp = at('build', '.configured');
  if (!existsSync(cache)) rmSync(stamp, { force: true });
  await unlessDone(stamp, print, async () => {
    say('configuring');
    rmSync(cache, { force: true });
    await mustNode(cmakeJs, args);
  });
}

/** @param {{ tests?: boolean }} [what] tests: all targets instead of the addon alone */
export async function buildNative({ tests = false } = {}) {
  await configureNative();
  say(tests ? 'building the addon and the native tests' : 'building the addon');
  await cmakeBuild(at('build'), tests ? [] : ['--target', 'infernode_addon']);
}

// One contract for both module systems: the classes live in the CommonJS file, the ES module hands them on.
const wrapper = `export * from './index.cjs';\nexport { default } from './index.cjs';\n`;
const wrapperTypes = `export * from './index.js';\nimport * as infernode from './index.js';\nexport default infernode;\n`;

// onnxruntime-common declares itself once for each module system, and each declaration lacks the same settings and types.
function augmentation() {
  const [text] = /^declare module [^]*?^}\n/m.exec(readFileSync(at('dist', 'tensor', 'tensor-types.d.ts'), 'utf8'));
  return `import type { LogMessage } from './index.js';\n${text}`;
}

export async function buildTypeScript() {
  const inputs = [
    ...filesBelow(at('src')),
    at('tsconfig.json'),
    at('tsconfig.build.json'),
    at('package-lock.json'),
    at('scripts', 'build.mjs'),
    at('scripts', 'lib', 'bundle.mjs'),
  ];
  await unlessDone(at('dist', '.built'), fingerprint(inputs), async () => {
    say('building the TypeScript layer');
    rmSync(at('dist'), { recursive: true, force: true });
    mkdirSync(at('dist'));
    await bundle();
    await bundleOthers();
    await mustNode(bin('typescript/bin/tsc'), ['-p', 'tsconfig.build.json']);
    writeFileSync(at('dist', 'index.mjs'), wrapper);
    writeFileSync(at('dist', 'index.d.mts'), wrapperTypes + augmentation());
    for (const name of furtherEntries) {
      writeFileSync(at('dist', `${name}.mjs`), `export * from './${name}.cjs';\n`);
      writeFileSync(at('dist', `${name}.d.mts`), `export * from './${name}.js';\n`);
    }
  });
}

if (isMain(import.meta.url)) {
  const flags = new Set(process.argv.slice(2));
  const all = !flags.has('--native') && !flags.has('--ts');
  runMain(async () => {
    await setup();
    if (all || flags.has('--native')) await buildNative({ tests: flags.has('--tests') });
    if (all || flags.has('--ts')) await buildTypeScript();
  });
}
