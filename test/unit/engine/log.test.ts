import { spawnSync } from 'node:child_process';
import { afterEach, describe, expect, it } from 'vitest';
import { projectRoot } from '../../../scripts/lib/engine.mjs';
import { failureOf, floats, ort, ours } from '../../fixtures/engine.js';
import { oneNode, type TensorInfo } from '../../fixtures/onnx-writer.js';

const { InferenceSession, env } = ort;
const info = (name: string, shape: TensorInfo['shape']): TensorInfo => ({ name, type: 'float32', shape });
/** Its output has another shape than it declares, which is a warning at load. */
const warns = oneNode('Neg', [info('x', [2])], [info('y', [3])]);
const text = "value 'y' is declared as tensor(float)[3] but is tensor(float)[2]";

describe.runIf(ours)('a log callback', () => {
  afterEach(() => {
    delete env.onLog;
  });

  it('per session hears what it says, before the load is over', async () => {
    const heard: any[] = [];
    const session = await InferenceSession.create(warns, {
      onLog: (message: any) => heard.push(message),
      logId: 'mine',
    });
    expect(heard).toEqual([{ severity: 'warning', category: 'inference', message: text, logId: 'mine' }]);
    InferenceSession.createSync(warns, { onLog: (message: any) => heard.push(message) });
    expect(heard).toHaveLength(2);
    expect(heard[1].logId).toBe('');
    await session.release();
  });

  it('per session hears runs, and only as much as is asked for', async () => {
    const heard: any[] = [];
    const listen = (message: any): void => void heard.push(message);
    await (await InferenceSession.create(warns, { onLog: listen, logSeverityLevel: 3 })).release();
    expect(heard).toEqual([]);
    const joined = oneNode('Add', [info('a', ['n']), info('b', ['n'])], [info('y', ['n'])]);
    const session = await InferenceSession.create(joined, { onLog: listen });
    await session.run({ a: floats([1, 2]), b: floats([1]) });
    await new Promise(setImmediate);
    expect(heard).toMatchObject([{ severity: 'warning', category: 'run' }]);
    await session.release();
  });

  it('per process is env.onLog, which a session’s own goes before', async () => {
    const [all, own]: [any[], any[]] = [[], []];
    env.onLog = (message: any) => all.push(message);
    await (await InferenceSession.create(warns)).release();
    expect(all).toMatchObject([{ message: text }]);
    await (await InferenceSession.create(warns, { onLog: (message: any) => own.push(message) })).release();
    expect([all.length, own.length]).toEqual([1, 1]);
    env.onLog = 5;
    expect(await failureOf(() => InferenceSession.create(warns))).toMatchObject({ code: 'INVALID_ARGUMENT' });
    delete env.onLog;
    (Object.prototype as any).onLog = 7; // is not env's own
    await (await InferenceSession.create(warns, { onLog: () => undefined })).release();
    delete (Object.prototype as any).onLog;
    expect(await failureOf(() => InferenceSession.create(warns, { onLog: 5 }))).toBeInstanceOf(TypeError);
  });

  it('takes the place of stderr, which is quiet by default', () => {
    const program = `
      const { InferenceSession } = require(${JSON.stringify(projectRoot)});
      const bytes = (text) => Buffer.from(text, 'base64');
      (async () => {
        const quiet = await InferenceSession.create(bytes('${Buffer.from(oneNode('Neg', [info('x', [2])], [info('y', [2])])).toString('base64')}'));
        await (await InferenceSession.create(bytes('${Buffer.from(warns).toString('base64')}'), { onLog() {} })).release();
        await quiet.release();
        console.log('over');
      })();`;
    const { stdout, stderr, status } = spawnSync(process.execPath, ['-e', program], { encoding: 'utf8' });
    expect([stdout, stderr, status]).toEqual(['over\n', '', 0]);
  });

  it('that throws is an uncaught exception of its own', () => {
    const program = `
      const { InferenceSession } = require(${JSON.stringify(projectRoot)});
      process.on('uncaughtException', (error) => console.log('uncaught', error.message));
      const bytes = Buffer.from('${Buffer.from(warns).toString('base64')}', 'base64');
      InferenceSession.create(bytes, { onLog() { throw new Error('mine'); } }).then(() => console.log('loaded'));`;
    const { stdout } = spawnSync(process.execPath, ['-e', program], { encoding: 'utf8' });
    expect(stdout.split('\n').sort()).toEqual(['', 'loaded', 'uncaught mine']);
  });

  it('of a worker that ends is let go of', async () => {
    const { Worker } = await import('node:worker_threads');
    const program = `
      const { InferenceSession } = require(${JSON.stringify(projectRoot)});
      const bytes = Buffer.from('${Buffer.from(warns).toString('base64')}', 'base64');
      const again = () => InferenceSession.create(bytes, { onLog() {} }).then(again);
      again();
      require('node:worker_threads').parentPort.postMessage('begun');`;
    for (let i = 0; i < 5; i++) {
      const worker = new Worker(program, { eval: true });
      await new Promise((resolve) => worker.once('message', resolve));
      await worker.terminate();
    }
  });
});
