#!/usr/bin/env node
// Runs the ONNX backend test suite through the JavaScript API and reports by operator.
//
// usage: npm run conformance -- [--only PATTERN] [--level disabled|basic|extended|layout|all] [--threads N]
//          [--cpu baseline|avx2|avx512|...] [--engine infernode|peer] [--jobs N] [--suite DIR] [--json [FILE]] [--list]
//          [--check-shapes]
//
// --check-shapes compares the shapes that follow from symbols with inferred ones. --only is a regular expression over
// kind/name, or an operator's exact name. Exit status 1 when a case failed: answered wrongly, crashed, or raised an error
// other than a refusal of an operator or type.
import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { engineName } from '../../scripts/lib/engine.mjs';
import { helpWasAsked } from '../../scripts/lib/project.mjs';
import { judgeAll, tally } from './lib/judge.mjs';
import { listCases, suiteFolder } from './lib/suite.mjs';

const options = {
  only: { type: 'string' },
  level: { type: 'string' },
  threads: { type: 'string' },
  cpu: { type: 'string' },
  engine: { type: 'string', default: engineName() },
  jobs: { type: 'string', default: String(Math.min(4, availableParallelism())) },
  suite: { type: 'string' },
  json: { type: 'string' },
  list: { type: 'boolean' },
  'check-shapes': { type: 'boolean' },
};

/** Rows of the report: operator -> counts, worst first. */
function byOperator(results) {
  const groups = new Map();
  for (const result of results) groups.set(result.operator, [...(groups.get(result.operator) ?? []), result]);
  return [...groups]
    .map(([operator, list]) => ({ operator, ...tally(list) }))
    .sort((a, b) => (a.operator < b.operator ? -1 : 1));
}

function print(results) {
  console.log(`${'operator'.padEnd(44)} passed  failed  not implemented`);
  for (const { operator, passed, failed, notImplemented } of byOperator(results)) {
    const cells = [String(passed).padStart(6), String(failed).padStart(7), String(notImplemented).padStart(16)];
    console.log(`${operator.padEnd(44)} ${cells.join(' ')}`);
  }
  const failures = results.filter((result) => result.outcome === 'failed');
  if (failures.length) console.log('\nfailed:');
  for (const { kind, name, reason } of failures)
    console.log(`  ${kind}/${name}: ${reason.replace(/\s+/g, ' ').slice(0, 300)}`);
  const { passed, failed, notImplemented } = tally(results);
  console.log(`\n${results.length} cases: ${passed} passed, ${failed} failed, ${notImplemented} not implemented`);
}

async function main() {
  const args = process.argv.slice(2);
  const bareJson = args.indexOf('--json');
  if (bareJson >= 0 && (!args[bareJson + 1] || args[bareJson + 1].startsWith('--'))) args[bareJson] = '--json=-';
  const { values } = parseArgs({ args, options });
  const only = values.only && new RegExp(values.only);
  const cases = listCases(values.suite ?? (await suiteFolder())).filter(
    ({ kind, name, operator }) => !only || only.test(`${kind}/${name}`) || operator === values.only,
  );
  if (!cases.length) throw new Error(`no case matches --only ${values.only}`);
  if (values.list) {
    for (const { kind, name, operator } of cases) console.log(`${kind}/${name}  ${operator}`);
    return;
  }
  const session = {
    logSeverityLevel: 4,
    ...(values.level && { graphOptimizationLevel: values.level }),
    ...(values.threads && { intraOpNumThreads: Number(values.threads) }),
    ...(values['check-shapes'] && { extra: { session: { check_symbolic_shapes: '1' } } }),
  };
  let done = 0;
  const progress = () => process.stderr.write(`\r${++done}/${cases.length}${done === cases.length ? '\n' : ''}`);
  const results = await judgeAll(cases, {
    engine: values.engine,
    session,
    env: values.cpu ? { INFERNODE_CPU: values.cpu } : {},
    jobs: Number(values.jobs),
    onResult: process.stderr.isTTY ? progress : undefined,
  });
  const counts = tally(results);
  if (values.json) {
    const { engine, level = 'all', threads = 'default', cpu = 'best' } = values;
    const report = JSON.stringify(
      { engine, level, threads, cpu, ...counts, operators: byOperator(results), cases: results },
      null,
      1,
    );
    if (values.json === '-') console.log(report);
    else writeFileSync(values.json, `${report}\n`);
  }
  if (values.json !== '-') print(results);
  if (counts.failed) process.exitCode = 1;
}

try {
  if (!helpWasAsked()) await main();
} catch (error) {
  console.error(`conformance: ${error.message}`);
  process.exitCode = 2;
}
