import { vi } from 'vitest';
import { FakeAddon } from './fake-native.js';

/** The double that src/ gets instead of the addon, in files that begin with `vi.mock('.../src/load-native.js')`. */
export const addon = new FakeAddon();
vi.mock('../../../src/load-native.js', () => ({ loadNative: () => addon }));

export const { InferenceSession, InferenceError, IoBinding, EngineTensor, Tensor, listDevices, listSupportedBackends } =
  await import('../../../src/index.js');

/** What an action throws or rejects with. */
export async function failureOf(action: () => unknown): Promise<any> {
  try {
    await action();
  } catch (error) {
    return error;
  }
  throw new Error('expected an error, but there was none');
}
