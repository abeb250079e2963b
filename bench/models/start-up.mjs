// What each file of src/start-up/ gains: bundles without one of them are loaded in turns with the whole one, each time in a
// process of its own.
//
// usage: node bench/models/start-up.mjs [--rounds N]
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { bundle, common } from '../../scripts/lib/bundle.mjs';
import { at, root, runMain } from '../../scripts/lib/project.mjs';
import { addModel } from '../architectures/add.mjs';
import { median } from './statistics.mjs';

/** What stands for a file, or undefined for the plugin that brings it in. */
const parts = {
  common: undefined,
  'early-load': '',
  'only-binary': 'export const onlyBinary = () => undefined;',
  'warm-up': 'export const warmUp = () => undefined;',
};

const replaced = (name, contents) => ({
  name: `without ${name}`,
  setup(build) {
    const filter = new RegExp(`start-up[\\\\/]${name}\\.ts$`);
    build.onLoad({ filter }, () => ({ contents, loader: 'ts' }));
  },
});

const pluginsWithout = (name) => {
  if (name === 'common') return [];
  return name === undefined ? [common] : [common, replaced(name, parts[name])];
};

/**
 * Milliseconds of `require`, of it and a first session, and for how long a first `run` holds the thread: of this thread's
 * processor time where Linux tells it, since a busy machine prolongs that less; then `require` and a first session by the clock.
 */
const probe = `
  const { existsSync, readFileSync } = require('node:fs');
  const [file, model] = process.argv.slice(1);
  const clock = () => performance.now();
  const told = '/proc/thread-self/schedstat';
  const now = existsSync(told) ? () => Number(readFileSync(told, 'utf8').split(' ')[0]) / 1e6 : clock;
  now();
  const [start, began] = [now(), clock()];
  const { InferenceSession, Tensor } = require(file);
  const required = now();
  InferenceSession.create(model).then((session) => {
    const [ready, there] = [now(), clock()];
    const feeds = { A: new Tensor('float32', [1, 2], [1, 2]), B: new Tensor('float32', [3, 4], [1, 2]) };
    const begin = now();
    const done = session.run(feeds);
    const held = now() - begin;
    return done.then(() => console.log(JSON.stringify([required - start, ready - start, held, there - began])));
  });
`;

runMain(async () => {
  const { values } = parseArgs({ options: { rounds: { type: 'string', default: '30' } } });
  const folder = at('build', 'start-up');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const model = at('build', 'start-up', 'add.onnx');
  writeFileSync(model, addModel());
  const variants = new Map([['all', undefined], ...Object.keys(parts).map((name) => [`without ${name}`, name])]);
  const times = new Map([...variants.keys()].map((name) => [name, []]));
  for (const [name, part] of variants) await bundle(`build/start-up/${name}.cjs`, pluginsWithout(part));
  const env = { INFERNODE_PREBUILD: root, ...process.env };
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const [name, rows] of times) {
      const args = ['-e', probe, `${folder}/${name}.cjs`, model];
      rows.push(JSON.parse(execFileSync(process.execPath, args, { env, encoding: 'utf8' })));
    }
  }
  const columns = ['`require`', 'and a first session', 'a first `run` holds', 'session, by the clock'];
  console.log(`| milliseconds | ${columns.join(' | ')} |\n| --- |${columns.map(() => ' ---: |').join('')}`);
  for (const [name, rows] of times) {
    const cells = columns.map((_, column) => median(rows.map((row) => row[column])).toFixed(2));
    console.log(`| ${name} | ${cells.join(' | ')} |`);
  }
});
