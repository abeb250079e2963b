// Which nodes a network's time goes to, and how near each comes to what the machine can do.
import { loadEngine } from '../../scripts/lib/engine.mjs';
import { toFeeds } from '../../scripts/lib/values.mjs';

const count = (dims) => dims.reduce((a, b) => a * b, 1);
const known = (value) => value?.shape?.every((dim) => typeof dim === 'number');

/** Floating-point operations of a convolution's or product's node from the dims of its values; undefined for others. */
export function operations(opType, inputs, output) {
  if (!known(output)) return undefined;
  const [x, w] = inputs;
  if (/ConvTranspose/.test(opType)) return known(w) && 2 * count(x.shape) * count(w.shape.slice(1));
  if (/Conv/.test(opType)) return known(w) && 2 * count(output.shape) * count(w.shape.slice(1));
  if (/MatMul|Gemm/.test(opType)) return known(x) && 2 * count(output.shape) * x.shape.at(-1);
  return undefined;
}

/**
 * The nodes that take most of a run, slowest first, until they are `share` of it: least times of `runs` runs.
 * @param {string} path
 * @param {Record<string, object>} feeds in plain form
 * @param {{ sessionOptions: object, flops: number, bytes: number, runs?: number, share?: number }} options flops and
 *   bytes a second: what the machine can do at most
 */
export async function slowNodes(path, feeds, { sessionOptions, flops, bytes, runs = 10, share = 0.7 }) {
  const { InferenceSession, Tensor } = await loadEngine('infernode');
  const session = await InferenceSession.create(path, {
    ...sessionOptions,
    enableProfiling: true,
    profileFilePrefix: path,
  });
  const tensors = toFeeds({ Tensor }, feeds);
  for (let i = 0; i < runs; i++) await session.run(tensors);
  const { nodes, values } = session.graph();
  const { events } = session.endProfiling();
  await session.release();
  const least = new Map();
  for (const { cat, name, dur, args } of events) {
    if (cat !== 'Node' || !name.endsWith('_kernel_time')) continue;
    const before = least.get(name);
    if (!before || dur < before.dur) least.set(name, { dur, args });
  }
  const all = [...least].map(([name, { dur, args }]) => {
    const node = nodes.find((each) => `${each.name}_kernel_time` === name);
    const inputs = node?.inputs.map((input) => values.get(input)) ?? [];
    const work = node && operations(node.opType, inputs, values.get(node.outputs[0]));
    const seconds = Math.max(dur, 1) / 1e6;
    const moved = Number(args.activation_size ?? 0) + Number(args.parameter_size ?? 0) + Number(args.output_size ?? 0);
    return {
      opType: String(args.op_name),
      shapes: inputs.filter(known).map(({ shape }) => shape.join('x')),
      method: args.method ?? args.expected_method,
      microseconds: dur,
      roof: work ? work / seconds / flops : moved / seconds / bytes,
      bound: work ? 'arithmetic' : 'memory',
    };
  });
  all.sort((a, b) => b.microseconds - a.microseconds);
  const total = all.reduce((sum, { microseconds }) => sum + microseconds, 0);
  let sum = 0;
  return all.filter(({ microseconds }) => {
    const wanted = sum < share * total;
    sum += microseconds;
    return wanted;
  });
}

/** One of them as a line. */
export const slowNodeText = ({ opType, shapes, method, microseconds, roof, bound }) =>
  `    ${String(microseconds).padStart(6)} us  ${opType} ${shapes.join(' ')}${method ? ` by ${method}` : ''}, ${(100 * roof).toFixed(0)} % of the roof of ${bound}`;
