// Whole networks with weights drawn at random: float32 on the GPU against float32 on the CPU, and their float16 forms.
import { architecture, asHalf, checks, halfArchitecture } from '../../bench/architectures/workloads.mjs';
import { elements } from '../conformance/lib/compare.mjs';
import { relativeDistance, worstError } from '../../scripts/lib/agreement.mjs';
import { EngineProcess } from '../../scripts/lib/engine-process.mjs';

const onGpu = { executionProviders: ['cuda', 'cpu'], providerFallback: false };
const minutes = 60_000;

const asFloat = (values) =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      value.type === 'float16' ? { ...value, type: 'float32', data: Float32Array.from(elements(value)) } : value,
    ]),
  );

/** The answers of three runs (the last one replays a graph), and the operators that ran on the GPU. */
async function answersOf(process, path, feeds, options, runs = 3) {
  const { id, placement } = await process.create(path, { logSeverityLevel: 3, ...options }, 5 * minutes);
  const answers = [];
  for (let i = 0; i < runs; i++) answers.push(asFloat(await process.run(id, feeds, undefined, 5 * minutes)));
  await process.release(id);
  return { answers, onDevice: placement.filter(({ provider }) => provider === 'cuda').map(({ opType }) => opType) };
}

/**
 * Of float32 the largest difference over the largest number of an output counts, of float16 the length of the difference
 * over that of the output.
 */
const ways = [
  { type: 'float32', tolerance: 1e-4, measure: undefined, path: architecture, feeds: (values) => values },
  { type: 'float16', tolerance: 1e-2, measure: relativeDistance, path: halfArchitecture, feeds: asHalf },
];

async function checkOne({ name, model, inputs }, result) {
  const process = await EngineProcess.start('infernode');
  try {
    const feeds = inputs(1);
    const [expected] = (await answersOf(process, await architecture(model), feeds, {}, 1)).answers;
    for (const { type, tolerance, measure, path, feeds: form } of ways) {
      const { answers, onDevice } = await answersOf(process, await path(model), form(feeds), onGpu);
      const worst = answers.map((answer) => worstError(answer, expected, measure));
      const { error, output } = worst.reduce((a, b) => (a.error >= b.error ? a : b));
      console.log(
        `${name.padEnd(24)} ${type}  ${error.toExponential(1)}${error ? ` in ${output}` : ''}, ${onDevice.length} nodes on the GPU`,
      );
      if (error <= tolerance) result.passed++;
      else result.failures.push(`${name}, ${type}: ${error} in ${output}`);
      for (const operator of new Set(onDevice)) result.onDevice[operator] = (result.onDevice[operator] ?? 0) + 1;
    }
  } catch (error) {
    result.failures.push(`${name}: ${error.message}`);
  } finally {
    await process.stop();
  }
}

export async function checkArchitectures({ jobs }) {
  const result = { passed: 0, failures: [], onDevice: {} };
  const queue = [...checks];
  const work = async () => {
    for (let check = queue.shift(); check; check = queue.shift()) await checkOne(check, result);
  };
  await Promise.all(Array.from({ length: jobs }, work));
  return result;
}
