import { cpSync, mkdirSync, mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../../scripts/lib/engine.mjs';
import { run } from '../../scripts/lib/run.mjs';

/** Packs the package in `from` and answers the path of the archive in `folder`. */
export async function packed(from: string, folder: string): Promise<string> {
  const printed = await run('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], { cwd: from });
  return join(folder, printed.trim().split('\n').at(-1)!);
}

/**
 * Archives of this package and of those that it depends on, made in `folder`, as npm would fetch them. It holds the binary
 * of this platform, where a release has it.
 */
export async function packAll(folder: string): Promise<Record<string, string>> {
  const open = mkdtempSync(join(folder, 'open-'));
  await run('tar', ['-xzf', await packed(projectRoot, open), '-C', open]);
  const platform = join(open, 'package', 'prebuilds', `${process.platform}-${process.arch}`);
  mkdirSync(platform, { recursive: true });
  cpSync(join(projectRoot, 'build', 'Release', 'infernode.node'), join(platform, 'infernode.node'));
  const archives: Record<string, string> = { infernode: await packed(join(open, 'package'), folder) };
  for (const name of ['onnxruntime-common', 'node-gyp-build'])
    archives[name] = await packed(join(projectRoot, 'node_modules', name), folder);
  return archives;
}
