// Runs the ONNX backend suite in this one process: under an emulator, children and pipes are not to be had. It prints
// nothing, since Node.js under wine writes to files alone.
//
// usage: node conformance.mjs <folder of the suite> <file for the report> [<n>: only each nth case of one operator]
import { writeFileSync } from 'node:fs';
import { engineOperations } from '../../scripts/lib/engine-operations.mjs';
import { loadEngine } from '../../scripts/lib/engine.mjs';
import { judge } from '../conformance/lib/judge.mjs';
import { listCases } from '../conformance/lib/suite.mjs';

const [, , suite, report, every] = process.argv;
const operations = engineOperations(await loadEngine('infernode'));
const engine = {
  alive: true,
  create: (model, options) => operations.create({ model, options }),
  run: (id, feeds, fetches) => operations.run({ id, feeds, fetches }),
  release: (id) => operations.release({ id }),
};

const outcomes = [];
const write = (said) => writeFileSync(report, JSON.stringify({ outcomes, ...said }));
const all = listCases(suite);
// Whole networks take minutes each where instructions are emulated.
const cases = every === undefined ? all : all.filter(({ kind }, i) => kind !== 'light' && i % Number(every) === 0);
for (const item of cases) {
  const name = `${item.kind}/${item.name}`;
  write({ during: name }); // what a process that ends here leaves
  const { outcome, reason } = await judge(engine, item, { engine: 'infernode', session: { logSeverityLevel: 4 } });
  outcomes.push({ name, outcome, ...(outcome === 'failed' && { reason: reason.slice(0, 300) }) });
}
write({ done: true });
