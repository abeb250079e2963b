import { createRequire } from 'node:module';

/** `require`, in the bundle as in sources that a test imports. */
export const load = createRequire(__filename);
