// Child processes whose output the user sees as it comes.
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { root } from './project.mjs';

/**
 * Runs a program in the repository with this process's own terminal.
 * @param {string} program
 * @param {string[]} args
 * @param {{ cwd?: string, env?: Record<string, string | undefined>, tee?: boolean, quiet?: boolean }} [options] with tee
 *   the output is also collected, with quiet collected alone
 * @returns {Promise<{ code: number, output: string }>} a signal's end counts as code 1
 */
export function live(program, args, options = {}) {
  const { cwd = root, env, quiet = false, tee = quiet } = options;
  return new Promise((resolve, reject) => {
    const shell = process.platform === 'win32' && program === 'npm'; // npm is a batch file there
    const stdio = tee ? ['ignore', 'pipe', 'pipe'] : ['ignore', 'inherit', 'inherit'];
    const child = spawn(program, args, { cwd, env: { ...process.env, ...env }, stdio, shell });
    let output = '';
    for (const [from, to] of tee
      ? [
          [child.stdout, process.stdout],
          [child.stderr, process.stderr],
        ]
      : []) {
      from.on('data', (chunk) => {
        output += chunk;
        if (!quiet) to.write(chunk);
      });
    }
    child.on('error', (error) => reject(new Error(`cannot start ${program}: ${error.message}`)));
    child.on('close', (code, signal) => {
      if (signal) console.error(`${program} was ended by ${signal}`);
      resolve({ code: code ?? 1, output });
    });
  });
}

/** As live(), but a failure is an Error. */
export async function must(program, args, options) {
  const { code } = await live(program, args, options);
  if (code !== 0) throw new Error(`${[program, ...args].join(' ').slice(0, 300)} failed (exit code ${code})`);
}

/** Builds a CMake build folder with all cores; clones of the project in other places share ccache's results. */
export const cmakeBuild = (folder, targets = []) =>
  must('cmake', ['--build', folder, '--parallel', String(availableParallelism()), '--config', 'Release', ...targets], {
    env: { CCACHE_BASEDIR: root, CCACHE_NOHASHDIR: 'true' },
  });

/** A JavaScript program, run by this node. */
export const mustNode = (script, args, options) => must(process.execPath, [script, ...args], options);
