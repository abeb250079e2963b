import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { projectRoot } from '../../../scripts/lib/engine.mjs';
import { ours } from '../../fixtures/engine.js';
import { matmul } from '../../fixtures/models.js';

/** How a process ends that makes a session and runs it, started by `command`. */
function answer(command: readonly string[]) {
  const program = `
    const { accessSync, constants, readdirSync } = require('node:fs');
    const fails = (call) => { try { call(); } catch ({ code }) { return code; } };
    const { InferenceSession, Tensor } = require(process.argv[1]);
    const square = () => new Tensor('float32', new Float32Array(512 * 512).fill(1), [512, 512]);
    InferenceSession.create(Buffer.from(process.env.MODEL, 'base64'))
      .then((session) => session.run({ a: square(), b: square() }))
      .then(({ c }) => console.log('answer', c.data[0], readdirSync('/sys').length > 0, fails(() => accessSync('/', constants.W_OK))));`;
  const [file, ...args] = [...command, process.execPath, '-e', program, projectRoot];
  const env = { ...process.env, MODEL: Buffer.from(matmul()).toString('base64') };
  const { status, signal, stdout, stderr } = spawnSync(file!, args, { env, encoding: 'utf8' });
  return { status, signal, stdout, stderr };
}

describe.runIf(ours && process.platform === 'linux')('a process that sees little of its machine', () => {
  // As on AWS Lambda, where a library that asks /sys for the processor's features ends the process.
  it.for([
    ['empty /sys', 'mount -t tmpfs none /sys', 'false undefined'],
    ['empty /sys and /proc', 'mount -t tmpfs none /sys && mount -t tmpfs none /proc', 'false undefined'],
    ['file system that is read-only', 'mount -o remount,bind,ro /', 'true EROFS'],
  ])('with %s runs models and says nothing', ([, hide, seen], context) => {
    const command = ['unshare', '--map-root-user', '--mount', 'sh', '-c', `${hide} && exec "$@"`, 'sh'];
    if (spawnSync(command[0]!, [...command.slice(1), 'true']).status !== 0)
      return context.skip('not run: file systems cannot be hidden here');
    expect(answer(command)).toEqual({ status: 0, signal: null, stdout: `answer 512 ${seen}\n`, stderr: '' });
  });
});
