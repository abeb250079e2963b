import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

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
    ` Binaries in ${root}: ${list}. Build one with \`npm run build\` in a checkout of its repository, and set` +
    ' INFERNODE_PREBUILD to that folder.'
  );
}

/** 'linux-x64', and which C library where that is not the usual one. */
function platformName(): string {
  const report = process.platform === 'linux' ? (process.report.getReport() as { header?: object }) : undefined;
  const musl = report?.header !== undefined && !('glibcVersionRuntime' in report.header);
  return `${process.platform}-${process.arch}${musl ? ' with musl' : ''}`;
}

/** Whether this code has left its package. */
function isBundled(root: string): boolean {
  if (process.env['INFERNODE_PREBUILD'] !== undefined) return false;
  try {
    const { name } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { name?: unknown };
    return name !== 'infernode';
  } catch {
    return true;
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
