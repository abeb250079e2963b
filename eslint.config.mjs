import js from '@eslint/js';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['build/', 'dist/', 'prebuilds/', 'node_modules/', '**/out/'] },
  js.configs.recommended,
  {
    files: ['**/*.{js,mjs,cjs}'],
    languageOptions: { globals: nodeGlobals() },
  },
  {
    files: ['scripts/lib/site/assets/*.js', 'test/unit/site-browser.test.mjs'],
    languageOptions: { globals: readonly('document getComputedStyle localStorage matchMedia') },
  },
  {
    files: ['src/**/*.ts', 'test/**/*.ts'],
    extends: [...tseslint.configs.strict],
    rules: {
      '@typescript-eslint/no-namespace': 'off', // the mirrored API merges namespaces into its interfaces
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
    },
  },
  {
    files: ['test/**/*.ts'],
    rules: {
      '@typescript-eslint/no-explicit-any': 'off', // wrong arguments are what these tests pass
      '@typescript-eslint/no-non-null-assertion': 'off',
    },
  },
  {
    rules: {
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      'no-control-regex': 'off',
    },
  },
  { files: ['**/*.ts'], rules: { 'no-unused-vars': 'off', 'no-undef': 'off', 'no-redeclare': 'off' } },
);

function nodeGlobals() {
  const names = `AbortController AbortSignal Buffer Float16Array SharedArrayBuffer Atomics TextDecoder TextEncoder URL WebAssembly
    __dirname __filename clearImmediate clearInterval clearTimeout console exports fetch global globalThis module performance
    process queueMicrotask require setImmediate setInterval setTimeout structuredClone FinalizationRegistry WeakRef`;
  return readonly(names);
}

function readonly(names) {
  return Object.fromEntries(names.split(/\s+/).map((name) => [name, 'readonly']));
}
