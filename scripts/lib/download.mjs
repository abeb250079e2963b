// Packages from registries, fetched with the registry's own client, checked and unpacked into the cache.
import { createHash } from 'node:crypto';
import { createReadStream, existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { cachePath } from './cache.mjs';
import { run } from './run.mjs';

/** Hex SHA-256 of a file. */
export async function sha256(path) {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

/** @throws {Error} when the file's SHA-256 is not the expected one */
export async function verify(path, expected) {
  const actual = await sha256(path);
  if (actual !== expected) throw new Error(`${basename(path)}: sha256 is ${actual}, expected ${expected}`);
}

/**
 * Makes a folder all at once: `fill` works in a temporary folder beside it, which is renamed when complete, so an
 * interrupted or concurrent run never leaves a half-filled one. An existing folder is kept as it is.
 * @param {string} folder
 * @param {(temporary: string) => Promise<void>} fill
 */
export async function folderOnce(folder, fill) {
  if (existsSync(folder)) return folder;
  await mkdir(dirname(folder), { recursive: true });
  const temporary = await mkdtemp(join(dirname(folder), `.${basename(folder)}-`));
  try {
    await fill(temporary);
    await rename(temporary, folder).catch((error) => {
      if (!existsSync(folder)) throw error; // otherwise another process was faster
    });
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
  return folder;
}

/** A Python interpreter with pip: the system's, or a virtual environment of ours where the system's has none. */
async function pythonWithPip() {
  const python = process.platform === 'win32' ? 'python' : 'python3';
  const hasPip = (program) =>
    run(program, ['-m', 'pip', '--version']).then(
      () => true,
      () => false,
    );
  if (await hasPip(python)) return python;
  const venv = await folderOnce(cachePath('python'), (folder) => run(python, ['-m', 'venv', '--copies', folder])).catch(
    (error) => {
      throw new Error(
        `Python 3 with pip is needed (Debian: apt-get install python3-pip python3-venv): ${error.message}`,
      );
    },
  );
  return join(venv, process.platform === 'win32' ? 'Scripts/python.exe' : 'bin/python3');
}

/** apt-get's options for another suite or processor of the system's own archive, with lists of their own in the cache. */
async function otherArchive({ suite, cpu }) {
  const folder = cachePath('apt', `${suite}-${cpu}`);
  await mkdir(join(folder, 'lists', 'partial'), { recursive: true });
  await mkdir(join(folder, 'archives', 'partial'), { recursive: true });
  const list = await run('apt-get', ['indextargets', '--format', '$(ORIGIN) $(REPO_URI)', 'Created-By: Packages']);
  const archive = /^Debian (\S+)/m.exec(list)?.[1];
  if (archive === undefined) throw new Error('apt-get knows no archive of Debian');
  const sources = join(folder, 'sources.list');
  const key = '/usr/share/keyrings/debian-archive-keyring.gpg';
  await writeFile(sources, `deb [signed-by=${key}] ${archive} ${suite} main\n`);
  return Object.entries({
    'APT::Architecture': cpu,
    'APT::Architectures': cpu,
    'APT::Sandbox::User': 'root',
    'Acquire::Languages': 'none',
    'Dir::Cache': folder,
    'Dir::Etc::SourceList': sources,
    'Dir::Etc::SourceParts': join(folder, 'none'),
    'Dir::State::Lists': join(folder, 'lists'),
  }).map(([name, value]) => `-o${name}=${value}`);
}

const pipDownload = ['--no-deps', '--quiet', '--disable-pip-version-check'];
const clients = {
  async npm({ spec }, folder) {
    await run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder, spec]);
  },
  async pip({ spec, tag }, folder) {
    const only = [...pipDownload, '--only-binary=:all:', ...(tag ? ['--platform', tag] : [])];
    await run(await pythonWithPip(), ['-m', 'pip', 'download', ...only, '--dest', folder, spec]);
  },
  /** pip looks at the hash, and then asks the package itself for its metadata: its build script runs. */
  async sdist({ spec, sha256 }, folder) {
    const list = join(folder, 'requirements.txt');
    await writeFile(list, `${spec} --hash=sha256:${sha256}\n`);
    const only = [...pipDownload, '--no-binary=:all:', '--require-hashes'];
    await run(await pythonWithPip(), ['-m', 'pip', 'download', ...only, '--dest', folder, '--requirement', list]);
    await rm(list);
  },
  async apt({ spec, suite, cpu }, folder) {
    const options = suite === undefined ? [] : await otherArchive({ suite, cpu });
    const download = () => run('apt-get', [...options, 'download', '--quiet', spec], { cwd: folder });
    await download().catch(async () => {
      await run('apt-get', [...options, 'update', '--quiet']); // a fresh system has no package lists
      await download();
    });
  },
};

async function unpack(archive, folder) {
  if (/\.(tgz|tar\.gz)$/.test(archive)) await run('tar', ['-xzf', archive, '-C', folder]);
  else if (archive.endsWith('.whl')) await run(await pythonWithPip(), ['-m', 'zipfile', '-e', archive, folder]);
  else if (archive.endsWith('.deb')) await run('dpkg-deb', ['--extract', archive, folder]);
  else throw new Error(`${basename(archive)}: unknown kind of archive`);
}

/**
 * Fetches one package's archive, without its dependencies and running none of its scripts (but for an sdist, which needs
 * a hash), and unpacks it.
 * @param {{ from: 'npm' | 'pip' | 'sdist' | 'apt', spec: string, sha256?: string, tag?: string, suite?: string, cpu?: string }} source
 *   sha256: the archive's; tag: of pip, the platform, where it is not this machine's; suite, cpu: of apt, likewise
 * @param {string} folder an existing empty folder, which receives the archive's files
 */
export async function fetchPackage(source, folder) {
  const download = await mkdtemp(join(dirname(folder), '.download-'));
  try {
    await clients[source.from](source, download);
    const [name] = await readdir(download);
    if (!name) throw new Error(`${source.spec}: the client fetched nothing`);
    const archive = join(download, name);
    if (source.sha256) await verify(archive, source.sha256);
    await unpack(archive, folder);
  } finally {
    await rm(download, { recursive: true, force: true });
  }
}
