// The folder where fetched models, the peer and generated test suites are kept between runs.
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Path inside the cache: $INFERNODE_CACHE, else $XDG_CACHE_HOME/infernode, else ~/.cache/infernode. */
export function cachePath(...parts) {
  const root =
    process.env.INFERNODE_CACHE ||
    (process.env.XDG_CACHE_HOME
      ? join(process.env.XDG_CACHE_HOME, 'infernode')
      : join(homedir(), '.cache', 'infernode'));
  return join(root, ...parts);
}
