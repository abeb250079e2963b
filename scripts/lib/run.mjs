// Child processes whose failure carries the command and what it printed last.
import { spawn } from 'node:child_process';

/**
 * Runs a program to its end without a shell.
 * @param {string} program
 * @param {string[]} args
 * @param {{ cwd?: string, env?: Record<string, string | undefined>, timeout?: number }} [options] env is added to this
 *   process's own; after `timeout` milliseconds the program is ended
 * @returns {Promise<string>} what it wrote to standard output
 * @throws {Error} when it cannot start or does not exit with 0
 */
export function run(program, args, options = {}) {
  return new Promise((resolve, reject) => {
    // npm is a batch file on Windows, which only a shell starts.
    const shell = process.platform === 'win32' && program === 'npm';
    const child = spawn(program, args, {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: options.timeout,
      shell,
    });
    let out = '';
    let err = '';
    child.stdout.on('data', (chunk) => (out += chunk));
    child.stderr.on('data', (chunk) => (err = (err + chunk).slice(-4000)));
    child.on('error', (error) => reject(new Error(`cannot start ${program}: ${error.message}`)));
    child.on('close', (code, signal) => {
      if (code === 0) resolve(out);
      else
        reject(
          new Error(`${program} ${args.join(' ')} ended with ${signal ?? code}: ${(err || out).trim().slice(-1500)}`),
        );
    });
  });
}
