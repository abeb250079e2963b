#!/usr/bin/env node
// Holds this machine's GPU against the CPU: the operators' native cases, the ONNX backend suite, and whole architectures
// with weights drawn at random, in float32 and float16. Nothing may fail that the CPU passes.
//
// usage: node test/gpu/gpu.mjs [--only operators,conformance,architectures] [--tests FILE] [--suite DIR] [--jobs N]
//          [--json FILE]
//   --tests   test_gpu_ops, which `cmake --build build --target test_gpu_ops` makes; that in build/ unless given
//   --suite   the folder of the backend suite; made in the cache unless given
//
// For each operator that the provider has, it lists in how many cases nodes of it ran on the GPU. The last line is
// `N passed, N failed`; an operator that no case ran there fails.
import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { at, runMain, say } from '../../scripts/lib/project.mjs';
import { checkArchitectures } from './architectures.mjs';
import { checkConformance } from './conformance.mjs';
import { checkOperators } from './operators.mjs';

const parts = { operators: checkOperators, conformance: checkConformance, architectures: checkArchitectures };

/** Operator -> cases of each part that ran it on the GPU. */
function printCoverage(coverage, names) {
  const operators = [...new Set(names.flatMap((name) => Object.keys(coverage[name])))].sort();
  console.log(`\n${'operator'.padEnd(36)} ${names.map((name) => name.padStart(14)).join(' ')}   cases on the GPU`);
  for (const operator of operators) {
    const cells = names.map((name) => String(coverage[name][operator] ?? 0).padStart(14));
    console.log(`${operator.padEnd(36)} ${cells.join(' ')}`);
  }
  return operators.filter((operator) => names.every((name) => !coverage[name][operator]));
}

runMain(async () => {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', default: Object.keys(parts).join(',') },
      tests: { type: 'string', default: at('build', 'test_gpu_ops') },
      suite: { type: 'string' },
      jobs: { type: 'string', default: String(Math.max(1, Math.floor(availableParallelism() / 2))) },
      json: { type: 'string' },
    },
  });
  const names = values.only.split(',');
  const unknown = names.find((name) => !parts[name]);
  if (unknown) throw new Error(`there is no part '${unknown}': ${Object.keys(parts).join(', ')}`);
  const total = { passed: 0, failed: 0 };
  const coverage = {};
  const failures = [];
  for (const name of names) {
    const started = performance.now();
    say(name);
    const result = await parts[name]({ tests: values.tests, suite: values.suite, jobs: Number(values.jobs) });
    coverage[name] = result.onDevice;
    total.passed += result.passed;
    total.failed += result.failures.length;
    failures.push(...result.failures.map((text) => `${name}: ${text}`));
    const seconds = ((performance.now() - started) / 1000).toFixed(0);
    for (const text of result.failures) console.log(`  ${text}`);
    console.log(`${name}: ${result.passed} passed, ${result.failures.length} failed in ${seconds} s`);
  }
  const untried = printCoverage(coverage, names);
  if (names.includes('operators')) {
    for (const operator of untried) failures.push(`operators: no case of ${operator} ran on the GPU`);
    if (untried.length) console.log(`\nno case on the GPU: ${untried.join(', ')}`);
    total.failed += untried.length;
  }
  if (values.json) writeFileSync(values.json, `${JSON.stringify({ ...total, coverage, failures }, null, 1)}\n`);
  if (total.failed) process.exitCode = 1;
  console.log(`\n${total.passed} passed, ${total.failed} failed`);
});
