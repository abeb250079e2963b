import { fileURLToPath } from 'node:url';

import { typeError } from './errors.js';

/** The path of a `file:` URL, in text or not. Throws TypeError for one of another host. */
export function pathOfFileUrl(url: URL | string): string {
  try {
    return fileURLToPath(url);
  } catch (error) {
    throw typeError(`The URL is of no file here. ${(error as Error).message}`);
  }
}
