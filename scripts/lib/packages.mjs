// The packages of a release: `infernode`, which is JavaScript alone, and @infernode/<platform>, which hold the binaries.
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { at } from './project.mjs';
import { run } from './run.mjs';

const manifest = () => JSON.parse(readFileSync(at('package.json'), 'utf8'));
const writeManifest = (folder, content) =>
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(content, null, 2)}\n`);

export const packageName = ({ name }) => `@infernode/${name}`;

/** Makes `folder` what the package of a platform holds. */
export function stagePlatform(platform, binary, folder) {
  const { version, license, engines, repository } = manifest();
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  copyFileSync(binary, join(folder, 'infernode.node'));
  for (const file of ['LICENSE', 'THIRD-PARTY-NOTICES.md']) copyFileSync(at(file), join(folder, file));
  const system = [platform.os, platform.cpu, platform.libc].filter(Boolean).join(' ');
  writeFileSync(
    join(folder, 'README.md'),
    `# ${packageName(platform)}\n\nThe binary for ${system} of the package infernode, which installs it.\n`,
  );
  writeManifest(folder, {
    name: packageName(platform),
    version,
    description: `infernode's binary for ${system}`,
    license,
    ...(repository && { repository }),
    engines,
    os: [platform.os],
    cpu: [platform.cpu],
    ...(platform.libc && { libc: [platform.libc] }),
    preferUnplugged: true, // Yarn unpacks it: no system loads a library out of an archive
    main: './infernode.node',
    files: ['infernode.node', 'THIRD-PARTY-NOTICES.md'],
  });
}

/** Makes `folder` what the main package holds, with the platforms' packages as its optional dependencies. */
export function stageMain(platforms, folder) {
  const { scripts: _, devDependencies: __, binary: ___, files, ...kept } = manifest();
  const version = kept.version;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const own = files.filter((file) => file !== 'prebuilds');
  for (const file of [...own, 'README.md', 'LICENSE']) {
    if (!existsSync(at(file))) throw new Error(`${file} is missing: run  npm run build -- --ts`);
    cpSync(at(file), join(folder, file), { recursive: true });
  }
  rmSync(join(folder, 'dist', '.built'), { force: true });
  const optionalDependencies = Object.fromEntries(platforms.map((platform) => [packageName(platform), version]));
  writeManifest(folder, { ...kept, files: own, optionalDependencies });
}

/**
 * Packs a folder as npm would publish it.
 * @returns {Promise<{ path: string, name: string, version: string, bytes: number, unpacked: number, files: string[] }>}
 */
export async function pack(folder, destination) {
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', destination];
  const [{ filename, name, version, size, unpackedSize, files }] = JSON.parse(await run('npm', args, { cwd: folder }));
  const path = join(destination, filename.replace('@', '').replaceAll('/', '-'));
  return { path, name, version, bytes: size, unpacked: unpackedSize, files: files.map((file) => file.path) };
}
