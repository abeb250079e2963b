// Random networks as workloads of the benchmark: any seed is as good as another.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gaussian, randomNumbers } from '../architectures/workloads.mjs';
import { Graph } from './graph.mjs';
import { families } from './networks.mjs';

/**
 * A network: its name, what was drawn, the file and its feeds.
 * @param {number} seed
 * @param {number} index
 */
export function network(seed, index) {
  const next = randomNumbers(seed * 1009 + index + 1);
  for (let i = 0; i < 8; i++) next(); // the first numbers of near seeds are alike
  const names = Object.keys(families);
  const family = names[index % names.length];
  const inputs = {};
  const graph = new Graph(next);
  const input = graph.input.bind(graph);
  graph.input = (name, dims) => {
    inputs[name] = dims;
    return input(name, dims);
  };
  const { note, y } = families[family](graph);
  return { name: `${family}-${seed}.${index}`, note, inputs, file: graph.file(y) };
}

const folders = [];
process.on('exit', () => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

const once = (make) => {
  let made;
  return () => (made ??= make());
};

/** So many workloads, in the form of the other sets; each file lies in a temporary folder while it is timed. */
export function randomWorkloads(seed, count) {
  return Array.from({ length: count }, (_, index) => {
    const { name, note, inputs, file } = network(seed, index);
    return {
      name,
      note,
      set: 'random',
      inputs: (of) => {
        const next = randomNumbers(of);
        return Object.fromEntries(Object.entries(inputs).map(([key, dims]) => [key, gaussian(dims, next, 0.5)]));
      },
      path: once(async () => {
        const folder = mkdtempSync(join(tmpdir(), 'infernode-random-'));
        folders.push(folder);
        const path = join(folder, 'model.onnx');
        writeFileSync(path, file);
        return path;
      }),
    };
  });
}
