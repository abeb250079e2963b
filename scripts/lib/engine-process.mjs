// An engine in a process of its own, so that two engines (or one under other settings) never share a library, a thread
// pool or a crash.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { peerFolder } from './peer.mjs';

const workerPath = fileURLToPath(new URL('./engine-worker.mjs', import.meta.url));

/** The child ended before it answered. */
export class EngineCrash extends Error {
  name = 'EngineCrash';
}

export class EngineProcess {
  #child;
  #pending = new Map();
  #serial = 0;
  #ready;
  #errors = '';

  /**
   * @param {string} engine `infernode` or `peer`
   * @param {Record<string, string>} [env] added to this process's environment
   */
  static async start(engine, env = {}) {
    if (engine === 'peer') await peerFolder(); // installed once, not by each child
    const process = new EngineProcess(engine, env);
    await process.#ready;
    return process;
  }

  constructor(engine, env) {
    this.#child = fork(workerPath, {
      env: { ...process.env, ...env, INFERNODE_ENGINE: engine },
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    this.#child.stderr.on('data', (chunk) => (this.#errors = (this.#errors + chunk).slice(-4000)));
    let refuse;
    this.#ready = new Promise((resolve, reject) => {
      refuse = reject;
      this.#child.on('message', (message) => {
        if (message.ready) return resolve();
        const waiting = this.#pending.get(message.serial);
        this.#pending.delete(message.serial);
        if (message.error) waiting?.reject(Object.assign(new Error(message.error.message), message.error));
        else waiting?.resolve(message.value);
      });
    });
    this.#child.on('exit', (code, signal) => {
      const crash = new EngineCrash(
        `the ${engine} process ended with ${signal ?? code}: ${this.#errors.trim().slice(-1000)}`,
      );
      refuse(crash);
      for (const { reject } of this.#pending.values()) reject(crash);
      this.#pending.clear();
      this.#child = null;
    });
  }

  #ask(operation, argument, timeout = 0) {
    if (!this.#child) return Promise.reject(new EngineCrash('the engine process has ended'));
    const serial = ++this.#serial;
    return new Promise((resolve, reject) => {
      const timer =
        timeout &&
        setTimeout(() => {
          this.#errors += `\nno answer within ${timeout} ms`;
          this.kill();
        }, timeout);
      const settle = (action) => (value) => {
        clearTimeout(timer);
        action(value);
      };
      this.#pending.set(serial, { resolve: settle(resolve), reject: settle(reject) });
      this.#child.send({ serial, operation, argument }, () => {}); // what cannot be sent any more, `exit` rejects
    });
  }

  get alive() {
    return this.#child !== null;
  }

  /** @returns {Promise<{ id: number, inputNames: string[], outputNames: string[], placement?: { opType: string, provider: string }[] }>} */
  create(model, options = {}, timeout) {
    return this.#ask('create', { model, options }, timeout);
  }

  /** Runs with plain feeds (see values.mjs) and answers with plain values by output name. */
  run(id, feeds, fetches, timeout) {
    return this.#ask('run', { id, feeds, fetches }, timeout);
  }

  /** Keeps feeds in the child for `time`. */
  feed(id, feeds) {
    return this.#ask('feed', { id, feeds });
  }

  /** @returns {Promise<number[]>} milliseconds of each run */
  time(id, count, fetches) {
    return this.#ask('time', { id, count, fetches });
  }

  release(id) {
    return this.#ask('release', { id });
  }

  kill() {
    this.#child?.kill('SIGKILL');
  }

  /** Ends the process and waits for it. */
  async stop() {
    const child = this.#child;
    if (!child) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.disconnect();
    const timer = setTimeout(() => child.kill('SIGKILL'), 5000);
    await ended;
    clearTimeout(timer);
  }
}

/** The values of INFERNODE_CPU that this machine has, from the lowest on. */
export async function rungsOfMachine() {
  const child = await EngineProcess.start('infernode', { INFERNODE_CPU: 'none' });
  const error = await child.create(new Uint8Array(1)).catch((reason) => reason);
  await child.stop();
  return error.expected.split(', ');
}
