// OpenVINO's CPU plugin, from its Python wheel, in a process of its own: the methods of EngineProcess that the benchmark
// needs. Its environment lives in the cache and is made on first use.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { pythonEnvironment } from '../../scripts/lib/python.mjs';
import { encodeFrame, readFrames } from './frames.mjs';

export const openvinoVersion = '2026.4.1';

const script = fileURLToPath(new URL('./openvino_engine.py', import.meta.url));

/** What went wrong last, in one line: pip and Python write much before it. */
const lastLine = (text) => text.trim().split('\n').at(-1).slice(0, 300);

/** The interpreter of its environment. */
export async function openvinoPython() {
  try {
    return await pythonEnvironment([`openvino==${openvinoVersion}`]);
  } catch (error) {
    throw new Error(
      `--peer openvino needs Python 3 with its module venv (Debian: apt-get install python3-venv) and the package ` +
        `openvino ${openvinoVersion} from PyPI: ${lastLine(error.message)}`,
    );
  }
}

export class OpenvinoProcess {
  #child;
  #waiting = [];
  #errors = '';
  #ended;

  static async start() {
    const engine = new OpenvinoProcess(await openvinoPython());
    await engine.#answer();
    return engine;
  }

  constructor(python) {
    this.#child = spawn(python, [script], { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#child.stderr.on('data', (chunk) => (this.#errors = (this.#errors + chunk).slice(-4000)));
    this.#child.stdin.on('error', () => {}); // the process has ended, which is told below
    const end = (reason) => {
      this.#ended = new Error(`the openvino process ended with ${reason}: ${lastLine(this.#errors)}`);
      for (const { reject } of this.#waiting.splice(0)) reject(this.#ended);
    };
    this.#child.on('error', (error) => end(error.message));
    this.#child.on('close', (code, signal) => end(signal ?? code));
    this.#listen().catch((error) => {
      this.#errors += `\n${error.message}`;
      this.#child.kill();
    });
  }

  async #listen() {
    for await (const { message, values } of readFrames(this.#child.stdout)) {
      const { resolve, reject } = this.#waiting.shift();
      if (message.error) reject(new Error(message.error));
      else resolve({ value: message.value, values });
    }
  }

  /** Answers come in the order of the questions. */
  #answer() {
    if (this.#ended) return Promise.reject(this.#ended);
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  #ask(message, values) {
    const frame = encodeFrame(message, values);
    const answer = this.#answer();
    for (const chunk of frame) this.#child.stdin.write(chunk);
    return answer;
  }

  /**
   * @param {string} model
   * @param {{ threads: number, precision: 'f32' | 'bf16', outputs?: string[] }} options outputs: all that is computed
   * @returns {Promise<{ id: number }>}
   */
  async create(model, { threads, precision, outputs = null }) {
    return (await this.#ask({ operation: 'create', model, threads, precision, outputs })).value;
  }

  /** Runs with plain feeds and answers with the plain values of `outputs`. */
  async run(id, feeds, outputs) {
    return (await this.#ask({ operation: 'run', id, outputs }, feeds)).values;
  }

  /** Keeps feeds for `time`. */
  async feed(id, feeds) {
    await this.#ask({ operation: 'feed', id }, feeds);
  }

  /** @returns {Promise<number[]>} milliseconds of each run */
  async time(id, count) {
    return (await this.#ask({ operation: 'time', id, count })).value;
  }

  async release(id) {
    await this.#ask({ operation: 'release', id });
  }

  /** Ends the process and waits for it. */
  async stop() {
    if (this.#ended) return;
    const closed = new Promise((resolve) => this.#child.once('close', resolve));
    this.#child.stdin.end();
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), 5000);
    await closed;
    clearTimeout(timer);
  }
}
