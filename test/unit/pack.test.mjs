// `npm pack` of a clone: the package has the binary that was built, or there is none.
import { execFile, execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import { at } from '../../scripts/lib/project.mjs';

const clone = mkdtempSync(join(tmpdir(), 'infernode-pack-'));
const shell = process.platform === 'win32';
const pack = () => promisify(execFile)('npm', ['pack', '--silent'], { cwd: clone, shell });
const write = (path, text) => {
  mkdirSync(dirname(join(clone, path)), { recursive: true });
  writeFileSync(join(clone, path), text);
};

for (const path of ['package.json', 'scripts/pack.mjs', 'scripts/lib/project.mjs']) cpSync(at(path), join(clone, path));
afterAll(() => rmSync(clone, { recursive: true, force: true }));

it('a clone that was not built is not packed, and it says what to do', async () => {
  write('dist/index.cjs', '');
  await expect(pack()).rejects.toThrow(/needs \S+infernode\.node: run `npm run build`/);
  expect(readdirSync(clone).filter((name) => name.endsWith('.tgz'))).toEqual([]);
});

it('a script that is named by way of a link runs', async () => {
  symlinkSync(at('bench', 'models'), join(clone, 'linked'), 'junction');
  const { stdout } = await promisify(execFile)(process.execPath, [join(clone, 'linked', 'fetch-models.mjs'), '--list']);
  expect(stdout).toMatch(/^ocr .*group/);
});

it('the package of a clone that was built has the binary of this platform', async () => {
  const place = `prebuilds/${process.platform}-${process.arch}/infernode.node`;
  write('build/Release/infernode.node', 'new');
  write(place, 'of an earlier build');
  await pack();
  const { version } = JSON.parse(readFileSync(at('package.json'), 'utf8'));
  execFileSync('tar', ['-xzf', `infernode-${version}.tgz`], { cwd: clone });
  expect(readFileSync(join(clone, 'package', place), 'utf8')).toBe('new');
});
