// Packs a release, checks it, and publishes it: `infernode` and the packages of all platforms.
//
// usage: npm run release -- --dry-run [--platform <name>...]
//        npm run release -- --seed=N   in CI, which has npm's credentials and says where the packages come from
//   --seed       of the first of the graphs at random (docs/reliability.md) that are run before anything is published:
//                one that was not used before
//   --platform   only these binaries, which the main package then depends on: for trials
//
// `npm run prebuild -- --all` and `npm run build -- --ts` come first. What is packed stands in build/release, with
// SHA256SUMS and the bill of materials (sbom.cdx.json).
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { complaintsAbout } from './lib/binary/checks.mjs';
import { sha256 } from './lib/download.mjs';
import { must, mustNode } from './lib/live.mjs';
import { pack, packageName, stageMain, stagePlatform } from './lib/packages.mjs';
import { chosenPlatforms, platforms, prebuilt } from './lib/platforms.mjs';
import { at, isMain, runMain, say } from './lib/project.mjs';
import { billOfMaterials } from './lib/sbom.mjs';
import { zigFolder } from './lib/zig.mjs';

const folder = at('build', 'release');
const mostUnpacked = 20e6;
const graphsAtRandom = 20_000;

/** Where the version stands, and what it is there. */
function versions() {
  const json = (file) => JSON.parse(readFileSync(at(file), 'utf8'));
  const [, cmake] = /project\(infernode VERSION (\S+)/.exec(readFileSync(at('CMakeLists.txt'), 'utf8')) ?? [];
  const [, changelog] = /^## (\d\S*)/m.exec(readFileSync(at('CHANGELOG.md'), 'utf8')) ?? [];
  const [, source] = /version = '([^']+)'/.exec(readFileSync(at('src', 'version.ts'), 'utf8')) ?? [];
  return {
    'package.json': json('package.json').version,
    'package-lock.json': json('package-lock.json').version,
    'src/version.ts': source,
    'CMakeLists.txt': cmake,
    'the newest entry of CHANGELOG.md': changelog,
  };
}

/** @returns {string[]} what keeps these versions and binaries from being a release; `zig`: where Zig is */
export function obstacles(chosen, zig, binaryOf = prebuilt, said = versions()) {
  const found = [];
  if (new Set(Object.values(said)).size > 1) {
    const list = Object.entries(said).map(([place, version]) => `${version} in ${place}`);
    found.push(`versions differ: ${list.join(', ')}`);
  }
  for (const platform of chosen) {
    const binary = binaryOf(platform);
    if (!existsSync(binary))
      found.push(`${packageName(platform)} has no binary: run  npm run prebuild -- --platform ${platform.name}`);
    else {
      const data = readFileSync(binary);
      const complaints = complaintsAbout(data, platform, zig);
      // The addon holds the version that CMake gave it.
      if (!data.includes(`${said['CMakeLists.txt']}\0`)) complaints.push(`is not of version ${said['CMakeLists.txt']}`);
      found.push(...complaints.map((complaint) => `${packageName(platform)}: the binary ${complaint}`));
    }
  }
  return found;
}

/** Packs what there is of the release, platforms first: the main package is published when all it depends on is there. */
async function packAll(chosen) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const packed = [];
  const add = async (place) => {
    const one = await pack(place, folder);
    packed.push({ ...one, sha256: await sha256(one.path) });
  };
  for (const platform of chosen.filter((one) => existsSync(prebuilt(one)))) {
    const place = join(folder, 'staged', platform.name);
    stagePlatform(platform, prebuilt(platform), place);
    await add(place);
  }
  const main = join(folder, 'staged', 'infernode');
  stageMain(chosen, main);
  await add(main);
  return packed;
}

async function main(args) {
  const dry = args.includes('--dry-run');
  const seed = args.find((arg) => /^--seed=\d+$/.test(arg))?.slice('--seed='.length);
  const names = args.filter((arg) => arg !== '--dry-run' && arg !== `--seed=${seed}`);
  if (!dry && seed === undefined)
    throw new Error(`a release runs ${graphsAtRandom} graphs at random, of a seed that was not used before: --seed=N`);
  if (names.length > 0 && !dry) throw new Error('a release has all platforms: --platform is for --dry-run');
  const chosen = names.length > 0 ? chosenPlatforms(names) : platforms;
  const found = obstacles(chosen, await zigFolder());
  const packed = await packAll(chosen);
  const unpacked = (suffix) =>
    packed
      .filter(({ name }) => name === 'infernode' || name.endsWith(suffix))
      .reduce((sum, one) => sum + one.unpacked, 0);
  for (const { name } of chosen) {
    if (unpacked(name) > mostUnpacked)
      found.push(
        `an installation on ${name} takes ${(unpacked(name) / 1e6).toFixed(1)} MB, more than ${mostUnpacked / 1e6}`,
      );
  }
  writeFileSync(join(folder, 'SHA256SUMS'), packed.map((one) => `${one.sha256}  ${basename(one.path)}\n`).join(''));
  writeFileSync(join(folder, 'sbom.cdx.json'), `${JSON.stringify(billOfMaterials(packed), null, 2)}\n`);
  for (const one of packed) {
    const sizes = `${(one.bytes / 1e6).toFixed(1)} MB packed, ${(one.unpacked / 1e6).toFixed(1)} MB unpacked`;
    say(`${dry ? 'would publish' : 'publishing'} ${one.name}@${one.version}: ${sizes}, with provenance`);
  }
  if (found.length > 0) throw new Error(`this is no release yet:\n  ${found.join('\n  ')}`);
  const graphs = ['--count', String(graphsAtRandom), '--seed', seed ?? 'N'];
  if (dry) return say(`a release runs  npm run differential -- ${graphs.join(' ')}  before it publishes`);
  await mustNode(at('test', 'differential', 'differential.mjs'), graphs);
  for (const { path } of packed) await must('npm', ['publish', path, '--access', 'public', '--provenance']);
}

if (isMain(import.meta.url)) runMain(() => main(process.argv.slice(2)));
