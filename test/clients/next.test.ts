import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { projectRoot } from '../../scripts/lib/engine.mjs';
import { run } from '../../scripts/lib/run.mjs';
import { available } from '../fixtures/available.js';
import { ours } from '../fixtures/engine.js';
import { matmul } from '../fixtures/models.js';
import { install } from './install.js';

const tools = () => install({ dependencies: { next: '15.5.29', react: '19.2.4', 'react-dom': '19.2.4' } });

const scratch: string[] = [];
let server: ChildProcess | undefined;
afterAll(() => {
  server?.kill('SIGKILL');
  for (const folder of scratch) rmSync(folder, { recursive: true, force: true });
});

const files = {
  'next.config.mjs': `export default {
    output: 'standalone',
    serverExternalPackages: ['infernode'],
    outputFileTracingRoot: import.meta.dirname,
  };`,
  'app/layout.js': 'export default ({ children }) => <html lang="en"><body>{children}</body></html>;',
  'app/page.js': 'export default () => <p>a page</p>;',
  'app/product/route.js': `
    import { InferenceSession, Tensor } from 'infernode';
    export const dynamic = 'force-dynamic';
    const model = Buffer.from('${Buffer.from(matmul()).toString('base64')}', 'base64');
    export async function GET() {
      const session = await InferenceSession.create(model);
      const square = () => new Tensor('float32', new Float32Array(4).fill(1), [2, 2]);
      const { c } = await session.run({ a: square(), b: square() });
      await session.release();
      return Response.json([...c.data]);
    }`,
};

/** A project with Next.js and, as npm would install it, this package with the binary of one platform. */
async function project(place: string): Promise<string> {
  const folder = mkdtempSync(join(projectRoot, 'build', 'next-'));
  scratch.push(folder);
  const app = join(folder, 'app');
  await run('cp', ['-al', place, app]); // hard links
  const modules = join(app, 'node_modules');
  for (const name of ['infernode', 'onnxruntime-node', 'onnxruntime-common'])
    rmSync(join(modules, name), { recursive: true, force: true });
  for (const name of ['onnxruntime-common', 'node-gyp-build'])
    cpSync(join(projectRoot, 'node_modules', name), join(modules, name), { recursive: true });
  cpSync(join(projectRoot, 'dist'), join(modules, 'infernode', 'dist'), { recursive: true });
  cpSync(join(projectRoot, 'package.json'), join(modules, 'infernode', 'package.json'));
  const binary = join('prebuilds', `${process.platform}-${process.arch}`, 'infernode.node');
  cpSync(join(projectRoot, 'build', 'Release', 'infernode.node'), join(modules, 'infernode', binary));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(app, name, '..'), { recursive: true });
    writeFileSync(join(app, name), text);
  }
  return app;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer().once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => resolve(port));
    });
  });
}

async function answerOf(url: string): Promise<string> {
  for (;;) {
    const response = await fetch(url).catch(() => undefined);
    if (response !== undefined) return response.text();
    if (server!.exitCode !== null) return `the server ended with ${server!.exitCode}`;
    await sleep(200);
  }
}

describe.runIf(ours)("Next.js's server build", () => {
  it('finds the package and its binary, which `output: standalone` holds', { timeout: 600_000 }, async (context) => {
    const app = await project(await available(context, 'Next.js', tools));
    const env = { NEXT_TELEMETRY_DISABLED: '1' };
    await run(process.execPath, [join(app, 'node_modules', 'next', 'dist', 'bin', 'next'), 'build'], { cwd: app, env });
    const alone = join(app, '..', 'alone'); // away from the project's node_modules
    cpSync(join(app, '.next', 'standalone'), alone, { recursive: true, verbatimSymlinks: true });
    rmSync(app, { recursive: true });
    const port = await freePort();
    const environment = { ...process.env, ...env, PORT: String(port), HOSTNAME: '127.0.0.1' };
    server = spawn(process.execPath, ['server.js'], { cwd: alone, env: environment, stdio: 'ignore' });
    expect(JSON.parse(await answerOf(`http://127.0.0.1:${port}/product`))).toEqual([2, 2, 2, 2]);
  });
});
