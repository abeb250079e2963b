// Engines in processes of their own, one for each environment, that outlive the graphs they run; and the writer of models.
import { mkdirSync, rmSync } from 'node:fs';
import { build } from 'esbuild';
import { EngineCrash, EngineProcess } from '../../scripts/lib/engine-process.mjs';
import { at } from '../../scripts/lib/project.mjs';

/** No operation of these graphs takes more than moments: what does not answer within this hangs. */
const timeLimit = 120_000;
/** A process has had enough after so many sessions. */
const mostSessions = 3000;

/** The writer that tests make their models with; what it wrote of a graph it gives again. */
export async function modelWriter(folder) {
  mkdirSync(folder, { recursive: true });
  const outfile = `${folder}/onnx-writer.mjs`;
  await build({
    entryPoints: [at('test/fixtures/onnx-writer.ts')],
    outfile,
    bundle: true,
    format: 'esm',
    logLevel: 'error',
  });
  const { model } = await import(outfile);
  const written = new WeakMap();
  return (graph) => {
    if (!written.has(graph)) written.set(graph, model(graph));
    return written.get(graph);
  };
}

/** What came of a model and feeds: `outputs` of each run, or the `error` that refused it, or the `fault` of the process. */
export class Engines {
  #running = new Map();
  #retired = [];
  /** What ended processes, and how many of those ends came again with one graph alone. */
  faults = [];
  explained = 0;

  /** @param {string} folder for what runs leave on the disk */
  constructor(folder) {
    this.folder = folder;
    mkdirSync(folder, { recursive: true });
  }

  async #engine(name, env) {
    const key = `${name} ${JSON.stringify(env)}`;
    const there = this.#running.get(key);
    const usable = there && there.sessions++ < mostSessions && (await there.started).alive;
    if (usable) return there.started;
    if (this.#running.get(key) === there) {
      this.#running.set(key, { started: EngineProcess.start(name, env), sessions: 1 });
      if (there) this.#retired.push(there.started);
    }
    return this.#running.get(key).started;
  }

  /**
   * Loads a model and runs it, `runs` times: the first alone, the others at once.
   * @param {Uint8Array | string} model
   */
  async play(model, feeds, how = {}) {
    const answer = await this.#play(model, feeds, how);
    if (!answer.fault) return answer;
    // Several graphs share a process: the one that ends a process of its own is at fault.
    const alone = new Engines(`${this.folder}-alone`);
    const again = await alone.#play(model, feeds, how);
    await alone.stop();
    if (how.engine !== 'peer') this.faults.push(answer.fault);
    if (again.fault) this.explained++;
    return again;
  }

  async #play(model, feeds, { engine = 'infernode', env = {}, options = {}, runs = 1 }) {
    const child = await this.#engine(engine, env);
    let id;
    try {
      ({ id } = await child.create(model, { logSeverityLevel: 4, ...options }, timeLimit));
      const outputs = [await child.run(id, feeds, undefined, timeLimit)];
      const more = Array.from({ length: runs - 1 }, () => child.run(id, feeds, undefined, timeLimit));
      return { outputs: [...outputs, ...(await Promise.all(more))] };
    } catch (error) {
      return error instanceof EngineCrash ? { fault: error.message } : { error: error.message, code: error.code };
    } finally {
      if (id !== undefined && child.alive) await child.release(id).catch(() => {});
    }
  }

  async stop() {
    const all = [...this.#retired, ...[...this.#running.values()].map(({ started }) => started)];
    await Promise.all(all.map(async (started) => (await started).stop()));
    rmSync(this.folder, { recursive: true, force: true });
  }
}
