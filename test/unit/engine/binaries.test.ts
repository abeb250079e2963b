import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';

const project = fileURLToPath(new URL('../../..', import.meta.url));
const addon = join(process.env['INFERNODE_PREBUILD'] ?? project, 'build', 'Release', 'infernode.node');
const folder = mkdtempSync(join(tmpdir(), 'infernode-binaries-'));
afterAll(() => rmSync(folder, { recursive: true }));
const here = `${process.platform}-${process.arch}`;

/** A folder that holds the addon (or what is no addon) in these places. */
function rootWith(name: string, places: readonly string[], contents = addon): string {
  const root = join(folder, name);
  for (const place of places) {
    mkdirSync(join(root, dirname(place)), { recursive: true });
    if (process.platform === 'win32') copyFileSync(contents, join(root, place));
    else symlinkSync(contents, join(root, place));
  }
  return root;
}

/** The files of the addon and of node-gyp-build that a process of its own loads, or its error. */
function loaded(root: string, env: Record<string, string> = {}): string[] {
  const program = `
    require(${JSON.stringify(project)}).listSupportedBackends();
    const names = Object.keys(require.cache).map((path) => path.replaceAll('\\\\', '/').split('/').at(-1));
    console.log(names.filter((name) => name.endsWith('.node') || name === 'node-gyp-build.js').join());`;
  const { stdout, stderr } = spawnSync(process.execPath, ['--preserve-symlinks', '-e', program], {
    encoding: 'utf8',
    cwd: folder,
    env: { ...process.env, INFERNODE_BINARY: '', INFERNODE_PREBUILD: root, ...env },
  });
  return stdout ? stdout.trim().split(',') : [/infernode has no binary/.exec(stderr)?.[0] ?? stderr];
}

describe('the addon is found', () => {
  it('where it was built, from a relative path too', () => {
    const root = rootWith('built', ['build/Release/infernode.node', `prebuilds/${here}/infernode.node`]);
    expect(loaded(root)).toEqual(['infernode.node']);
    expect(loaded(relative(folder, root))).toEqual(['infernode.node']);
  });

  it('among binaries for one platform each', () => {
    expect(loaded(rootWith('alone', [`prebuilds/${here}/infernode.node`]))).toEqual(['infernode.node']);
  });

  it('by node-gyp-build where there are several, or other names', () => {
    const tagged = rootWith('tagged', [`prebuilds/${here}/infernode.abi1.node`, `prebuilds/${here}/infernode.node`]);
    expect(loaded(tagged)).toContain('node-gyp-build.js');
    expect(loaded(tagged)).toContain('infernode.node');
    const other = rootWith('other', [`prebuilds/${here}/other.node`]);
    expect(loaded(other)).toEqual(expect.arrayContaining(['node-gyp-build.js', 'other.node']));
    const both = rootWith('both', ['build/Release/infernode.node', `prebuilds/${here}/infernode.node`]);
    expect(loaded(both, { PREBUILDS_ONLY: '1' })).toContain('node-gyp-build.js');
  });

  it('or an error says that there is none', () => {
    expect(loaded(join(folder, 'nothing'))).toEqual(['infernode has no binary']);
    const text = fileURLToPath(import.meta.url);
    expect(loaded(rootWith('broken', ['build/Release/infernode.node'], text))).toEqual(['infernode has no binary']);
  });
});
