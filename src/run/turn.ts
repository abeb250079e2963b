import { setImmediate } from 'node:timers';
import { now } from '../clock.js';

/** Milliseconds that runs on the calling thread may keep the event loop from turning. */
const longestHold = 2;

let begin: number | undefined;

/**
 * Whether a run may execute on this thread. Runs that are over at once settle their promises without a turn of the event
 * loop: a program that awaits one after the other, or calls many, would keep timers and connections waiting.
 */
export function mayHoldLoop(): boolean {
  if (begin !== undefined) return now() - begin < longestHold;
  begin = now();
  setImmediate(() => {
    begin = undefined;
  });
  return true;
}
