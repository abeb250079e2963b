// The ONNX backend test suite as folders of cases.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { cachePath } from '../../../scripts/lib/cache.mjs';
import { folderOnce } from '../../../scripts/lib/download.mjs';
import { projectRoot } from '../../../scripts/lib/engine.mjs';
import { run } from '../../../scripts/lib/run.mjs';
import { readModel, readValue } from './onnx-data.mjs';

const onnxVersion = '1.23.1';

/** Fills a folder with the suite: from an archive beside the checkout, else made from the onnx package. */
async function fill(folder) {
  const archive = join(projectRoot, '..', 'shared', 'conformance', `onnx-${onnxVersion}-cases.tar.xz`);
  if (existsSync(archive)) {
    await run('tar', ['-xJf', archive, '-C', folder]);
    const top = join(folder, 'data');
    for (const kind of readdirSync(top)) await rename(join(top, kind), join(folder, kind));
    await rm(top, { recursive: true });
    return;
  }
  const python = process.platform === 'win32' ? 'Scripts/python.exe' : 'bin/python3';
  const venv = await folderOnce(cachePath('conformance', `python-onnx-${onnxVersion}`), async (temporary) => {
    await run(process.platform === 'win32' ? 'python' : 'python3', ['-m', 'venv', '--copies', temporary]);
    await run(join(temporary, python), [
      '-m',
      'pip',
      'install',
      '--quiet',
      '--disable-pip-version-check',
      `onnx==${onnxVersion}`,
    ]);
  });
  await run(join(venv, python), [
    join(projectRoot, 'test', 'generators', 'make-conformance.py'),
    join(folder, 'suite'),
  ]);
  for (const kind of readdirSync(join(folder, 'suite'))) await rename(join(folder, 'suite', kind), join(folder, kind));
  await rm(join(folder, 'suite'), { recursive: true });
}

/** The suite's folder, prepared in the cache on first use. */
export const suiteFolder = () => folderOnce(cachePath('conformance', `onnx-${onnxVersion}`), fill);

/** @typedef {{ kind: string, name: string, folder: string, operator: string, random: boolean, model: ReturnType<typeof readModel> }} Case */

const randomOperators = new Set(
  'Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike'.split(' '),
);

/** Whether the answer is drawn at random: by its operators, and for Dropout while training by the case's name. */
function isRandom(name, model) {
  return (
    model.operators.some((operator) => randomOperators.has(operator)) ||
    (/^test_training_dropout/.test(name) && !/zero_ratio/.test(name))
  );
}

/** Every case of a suite, sorted by kind and name. */
export function listCases(suite) {
  const cases = [];
  const kinds = readdirSync(suite, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  for (const { name: kind } of kinds) {
    for (const name of readdirSync(join(suite, kind))) {
      const folder = join(suite, kind, name);
      const model = readModel(readFileSync(join(folder, 'model.onnx')));
      cases.push({ kind, name, folder, model, random: isRandom(name, model), operator: '' });
    }
  }
  const byName = new Map(cases.map((item) => [item.name, item]));
  for (const item of cases) {
    // An expanded case spells out the body of the operator that the plain case of that name is about.
    const about = byName.get(item.name.replace(/_expanded.*$/, '')) ?? item;
    const own = about.model.operators.filter((operator) => operator !== 'Constant');
    item.operator = item.kind === 'node' || own.length === 1 ? (own[0] ?? 'Constant') : `(${item.kind})`;
  }
  return cases.sort((a, b) => (a.kind + a.name < b.kind + b.name ? -1 : 1));
}

/** The data sets of a case: [{ inputs: { name: value }, outputs: [{ name, value }] }] */
export function readDataSets({ folder, model }) {
  const sets = readdirSync(folder).filter((entry) => entry.startsWith('test_data_set_'));
  return sets.sort().map((set) => {
    const read = (prefix, infos) =>
      infos.flatMap(({ name, kind }, i) => {
        const path = join(folder, set, `${prefix}_${i}.pb`);
        if (existsSync(path)) return [{ name, value: readValue(readFileSync(path), kind) }];
        // An optional without a value has no file.
        return kind === 'optional' ? [{ name, value: null }] : [];
      });
    const inputs = Object.fromEntries(read('input', model.inputs).map(({ name, value }) => [name, value]));
    return { inputs, outputs: read('output', model.outputs) };
  });
}

/** @returns {{ rtol: number, atol: number }} */
export function readTolerance({ folder }) {
  const path = join(folder, 'tolerance.json');
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : { rtol: 1e-3, atol: 1e-7 };
}
