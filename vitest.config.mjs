import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/{unit,types,models,conformance,clients}/**/*.test.{ts,mts,mjs}'],
    pool: 'forks', // a crash of the native code takes one file down, not the run
    fileParallelism: false, // the engine under test takes all cores, and some tests measure time
    poolOptions: { forks: { execArgv: ['--expose-gc'] } },
    testTimeout: 180_000,
    hookTimeout: 600_000,
    dangerouslyIgnoreUnhandledErrors: false,
  },
});
