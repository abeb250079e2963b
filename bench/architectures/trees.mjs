// A tree ensemble as gradient boosting makes them, with splits and leaves drawn at random.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cachePath } from '../../scripts/lib/cache.mjs';
import { folderOnce } from '../../scripts/lib/download.mjs';
import { attribute, bytes, floats, integer, ints, message, operatorSet, strings, value } from './onnx-messages.mjs';
import { gaussian, randomNumbers } from './workloads.mjs';

const trees = 500;
const depth = 8;
const features = 100;

function model() {
  const next = randomNumbers(1);
  const inner = 2 ** depth - 1;
  const perTree = 2 * inner + 1;
  const nodes = Array.from({ length: trees * perTree }, (_, i) => {
    const id = i % perTree;
    return { tree: Math.floor(i / perTree), id, leaf: id >= inner };
  });
  const thresholds = gaussian([nodes.length], next).data;
  const leaves = nodes.filter(({ leaf }) => leaf);
  const of = (pick) => nodes.map((node, i) => (node.leaf ? 0 : pick(node, i)));
  const node = message(
    1,
    bytes(1, 'X'),
    bytes(2, 'Y'),
    bytes(4, 'TreeEnsembleRegressor'),
    ints(
      'nodes_treeids',
      nodes.map(({ tree }) => tree),
    ),
    ints(
      'nodes_nodeids',
      nodes.map(({ id }) => id),
    ),
    ints(
      'nodes_featureids',
      of(() => Math.floor(next() * features)),
    ),
    floats(
      'nodes_values',
      of((_, i) => thresholds[i]),
    ),
    strings(
      'nodes_modes',
      nodes.map(({ leaf }) => (leaf ? 'LEAF' : 'BRANCH_LEQ')),
    ),
    ints(
      'nodes_truenodeids',
      of(({ id }) => 2 * id + 1),
    ),
    ints(
      'nodes_falsenodeids',
      of(({ id }) => 2 * id + 2),
    ),
    ints(
      'target_treeids',
      leaves.map(({ tree }) => tree),
    ),
    ints(
      'target_nodeids',
      leaves.map(({ id }) => id),
    ),
    ints(
      'target_ids',
      leaves.map(() => 0),
    ),
    floats('target_weights', gaussian([leaves.length], next, 0.01).data),
    attribute('n_targets', 'int', integer(3, 1)),
    bytes(7, 'ai.onnx.ml'),
  );
  const graph = message(7, node, bytes(2, 'trees'), value(11, 'X', ['N', features]), value(12, 'Y', ['N', 1]));
  return Buffer.concat([integer(1, 8), graph, operatorSet('', 15), operatorSet('ai.onnx.ml', 3)]);
}

async function path() {
  const folder = cachePath('trees', `${trees}x${depth}x${features}`);
  await folderOnce(folder, (temporary) => writeFileSync(join(temporary, 'model.onnx'), model()));
  return join(folder, 'model.onnx');
}

/** What a service asks of such a model: one row, and many. */
export const treeWorkloads = [1, 10_000].map((rows) => ({
  name: `trees ${trees}x${depth}, ${rows} ${rows === 1 ? 'row' : 'rows'}`,
  path,
  inputs: (seed) => ({ X: gaussian([rows, features], randomNumbers(seed)) }),
}));
