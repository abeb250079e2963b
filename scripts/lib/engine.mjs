// The engine that a script or test drives: this checkout's, or onnxruntime-node for comparison.
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { peerFolder } from './peer.mjs';

const require = createRequire(import.meta.url);

/** The checkout that this script belongs to. */
export const projectRoot = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

/** `infernode` (this checkout) unless INFERNODE_ENGINE says `peer`. */
export const engineName = () => process.env.INFERNODE_ENGINE || 'infernode';

/** What the engines are loaded with: the peer's telemetry is off. Read when the libraries load. */
export const engineEnvironment = { ORT_DISABLE_TELEMETRY: '1' };

/** The folder that an engine is required from. */
export async function engineFolder(name = engineName()) {
  if (name === 'infernode') return projectRoot;
  if (name !== 'peer') throw new Error(`unknown engine '${name}': use infernode or peer`);
  return peerFolder();
}

/**
 * The engine's module. Both have the same API.
 * @param {string} [name] `infernode` or `peer`
 * @returns {Promise<typeof import('onnxruntime-common')>}
 */
export async function loadEngine(name = engineName()) {
  Object.assign(process.env, engineEnvironment);
  return require(await engineFolder(name));
}
