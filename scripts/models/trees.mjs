// A tree ensemble as gradient boosting makes them, with splits and leaves drawn at random.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cachePath } from '../lib/cache.mjs';
import { folderOnce } from '../lib/download.mjs';
import { gaussian, randomNumbers } from './workloads.mjs';

const trees = 500;
const depth = 8;
const features = 100;

// ---- Protocol buffers: the few messages of ONNX that the model needs ----

function varint(value) {
  const bytes = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) + 0x80);
  bytes.push(rest);
  return Buffer.from(bytes);
}
const integer = (field, value) => Buffer.concat([varint(field * 8), varint(value)]);
const bytes = (field, content) => {
  const data = Buffer.from(content);
  return Buffer.concat([varint(field * 8 + 2), varint(data.length), data]);
};
const message = (field, ...parts) => bytes(field, Buffer.concat(parts));

const attributeTypes = { int: 2, floats: 6, ints: 7, strings: 8 };
const attribute = (name, type, content) => message(5, bytes(1, name), integer(20, attributeTypes[type]), content);
const ints = (name, values) => attribute(name, 'ints', bytes(8, Buffer.concat(values.map(varint))));
const floats = (name, values) => attribute(name, 'floats', bytes(7, Buffer.from(Float32Array.from(values).buffer)));
const strings = (name, values) => attribute(name, 'strings', Buffer.concat(values.map((value) => bytes(9, value))));

/** A float32 input or output of dims [N, columns]. */
const value = (field, name, columns) =>
  message(
    field,
    bytes(1, name),
    message(2, message(1, integer(1, 1), message(2, message(1, bytes(2, 'N')), message(1, integer(1, columns))))),
  );
const operatorSet = (domain, version) => message(8, bytes(1, domain), integer(2, version));

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
  const graph = message(7, node, bytes(2, 'trees'), value(11, 'X', features), value(12, 'Y', 1));
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
