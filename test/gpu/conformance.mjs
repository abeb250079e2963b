// The ONNX backend suite with the providers cuda and cpu. A case that fails so, and on the CPU alone too, is no fault of
// the GPU's.
import { addModel } from '../../bench/architectures/add.mjs';
import { judgeAll } from '../conformance/lib/judge.mjs';
import { listCases, suiteFolder } from '../conformance/lib/suite.mjs';

const jobs = 2; // more would wait for each other's turns on the GPU
const onGpu = { executionProviders: ['cuda', 'cpu'], providerFallback: false };

/** The GPU keeps float32 where the cases round after every step. */
const tolerances = { float16: { rtol: 2e-3, atol: 2e-3 }, bfloat16: { rtol: 1.6e-2, atol: 1.6e-2 } };

export async function checkConformance({ suite }) {
  const cases = listCases(suite ?? (await suiteFolder()));
  const judged = (list, session, begin) =>
    judgeAll(list, { engine: 'infernode', session: { logSeverityLevel: 4, ...session }, jobs, begin, tolerances });
  // A session that stays keeps the device open between the cases.
  const results = await judged(cases, onGpu, (process) => process.create(addModel(), onGpu));
  const result = { passed: 0, failures: [], onDevice: {} };
  const failed = results.filter(({ outcome }) => outcome === 'failed');
  const names = new Set(failed.map(({ kind, name }) => `${kind}/${name}`));
  const plain = await judged(
    cases.filter(({ kind, name }) => names.has(`${kind}/${name}`)),
    {},
  );
  const failedBefore = new Set(plain.filter(({ outcome }) => outcome === 'failed').map(({ name }) => name));
  for (const { kind, name, reason } of failed) {
    if (!failedBefore.has(name)) result.failures.push(`${kind}/${name}: ${reason.replace(/\s+/g, ' ').slice(0, 300)}`);
  }
  for (const { outcome, onDevice } of results) {
    if (outcome === 'passed') result.passed++;
    for (const operator of new Set(onDevice)) result.onDevice[operator] = (result.onDevice[operator] ?? 0) + 1;
  }
  return result;
}
