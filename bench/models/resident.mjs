// What memory a process holds when garbage is collected; it runs with --expose-gc.
import { setTimeout as sleep } from 'node:timers/promises';

/** Megabytes of this process in memory, after collections and the finalizers that run between turns of the loop. */
export async function residentMegabytes() {
  for (let i = 0; i < 4; i++) {
    globalThis.gc();
    await sleep(50);
  }
  return process.memoryUsage.rss() / 2 ** 20;
}
