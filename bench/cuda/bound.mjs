// Runs whose inputs and outputs stay on the device, and their times.

export const percentile = (times, share) => times.toSorted((a, b) => a - b)[Math.floor((times.length - 1) * share)];

/** Milliseconds. */
export async function timeOf(work) {
  const begin = performance.now();
  await work();
  return performance.now() - begin;
}

/** Milliseconds of each of `count` calls, after some that warm up. */
export async function timesOf(call, count) {
  const times = [];
  for (let i = 0; i < count + 20; i++) {
    const ms = await timeOf(call);
    if (i >= 20) times.push(ms);
  }
  return times;
}

/**
 * A binding of the session's inputs and outputs to tensors on its first device, so that runs have the same addresses;
 * feeds are the engine's tensors. Runs once to learn the outputs' shapes.
 */
export function bound(session, feeds) {
  const device = session.placement.some(({ provider }) => provider === 'cuda') ? 'cuda:0' : 'cpu';
  const binding = session.createIoBinding();
  for (const [name, tensor] of Object.entries(feeds)) {
    const there = session.allocate(tensor.type, tensor.dims, device);
    if (tensor.size > 0) there.setData(tensor.data);
    binding.bindInput(name, there);
  }
  for (const name of session.outputNames) binding.bindOutput(name, device);
  for (const [name, { type, dims }] of Object.entries(binding.runSync())) {
    binding.bindOutput(name, session.allocate(type, dims, device));
  }
  return binding;
}
