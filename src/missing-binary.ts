import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { hasMusl, packagedBinaries, packagedPlatforms } from './start-up/only-binary.js';

/** What the error says where no addon could be loaded from `root`. */
export function missingBinary(root: string, cause: unknown): string {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const head = `infernode has no binary that loads on ${platformName()} (Node.js ${process.versions.node}).`;
  return `${head}${advice(root, cause)} ${reason}`;
}

function advice(root: string, cause: unknown): string {
  if ((cause as { code?: unknown } | undefined)?.code === 'ERR_DLOPEN_DISABLED') {
    return (process as { permission?: unknown }).permission === undefined
      ? ' Node.js was started with --no-addons, and infernode is one: start it without.'
      : ' Node.js was started with --permission: add --allow-addons.';
  }
  const file = process.env['INFERNODE_BINARY'];
  if (file)
    return ` INFERNODE_BINARY names '${file}', which does not load: have it name an infernode.node, or unset it.`;
  if (isBundled(root)) {
    return (
      ' It looks as if it were bundled, and the binary were left behind: have it left out of the bundle (esbuild' +
      ' --external:infernode; docs/bundlers.md has the others), put infernode.node beside the bundle, or have' +
      ' INFERNODE_PREBUILD name the folder of the package.'
    );
  }
  const there = binariesIn(root);
  const list = there.length === 0 ? 'none' : there.join(', ');
  return (
    `${packageAdvice(root)} Binaries in ${root}: ${list}. To build one, run \`npm run build\` in a checkout of its repository,` +
    ' and set INFERNODE_PREBUILD to that folder.'
  );
}

/** What to do about the package that holds this platform's binary. */
function packageAdvice(root: string): string {
  const wanted = `${process.platform}-${process.arch}${hasMusl() ? '-musl' : ''}`;
  if (!packagedPlatforms.includes(wanted)) return ` Packages have it for ${packagedPlatforms.join(', ')}.`;
  const name = `@infernode/${wanted}`;
  const installed = [...packagedBinaries().keys()];
  if (installed.includes(wanted)) {
    const system = process.platform === 'linux' && !hasMusl() ? ': it needs glibc 2.28 or newer' : '';
    return ` ${name} is installed and does not load${system}.`;
  }
  const manifest = manifestIn(root);
  if (manifest.optionalDependencies?.[name] === undefined && installed.length === 0) return tarballAdvice(root);
  const instead = installed.length > 0 ? `, but @infernode/${installed[0]}, which is for another C library` : '';
  return (
    ` ${name} is not installed${instead}: run \`npm install ${name}@${String(manifest.version ?? 'latest')}\`. Package managers leave it out where optional` +
    ' dependencies are (--omit=optional), and where node_modules was made on another platform.'
  );
}

/** The same where the package knows of no such packages: it was packed of a checkout, with the binaries that it has. */
function tarballAdvice(root: string): string {
  const there = binariesIn(root);
  const holds = there.length === 0 ? 'without a binary' : `on ${there.join(' and ')}`;
  return ` This package was packed ${holds}, which \`npm pack\` does of a checkout: build and pack one on this platform.`;
}

/** 'linux-x64', and which C library where that is not the usual one. */
const platformName = (): string => `${process.platform}-${process.arch}${hasMusl() ? ' with musl' : ''}`;

/** Whether this code has left its package. */
function isBundled(root: string): boolean {
  if (process.env['INFERNODE_PREBUILD'] !== undefined) return false;
  return manifestIn(root).name !== 'infernode';
}

interface Manifest {
  readonly name?: unknown;
  readonly version?: unknown;
  readonly optionalDependencies?: Readonly<Record<string, unknown>>;
}

/** What package.json says, if there is one. */
function manifestIn(root: string): Manifest {
  try {
    return JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as object;
  } catch {
    return {};
  }
}

/** Names of the platforms that the package has binaries for. */
function binariesIn(root: string): string[] {
  const folder = join(root, 'prebuilds');
  try {
    return existsSync(folder) ? readdirSync(folder).sort() : [];
  } catch {
    return []; // not readable
  }
}
