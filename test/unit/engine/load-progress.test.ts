import { describe, expect, it } from 'vitest';
import { failureOf, ort } from '../../fixtures/engine.js';
import { add } from '../../fixtures/models.js';
import { slow } from './models.js';

const { InferenceSession } = ort;

describe("a load's progress", () => {
  it('goes from bytes over nodes to the session', async () => {
    const bytes = slow(250);
    const heard: any[] = [];
    const session = await InferenceSession.create(bytes, { onProgress: (progress: any) => heard.push(progress) });
    const { nodes } = session.graph();
    expect(heard.map(({ phase }) => phase).filter((phase, i, all) => phase !== all[i - 1])).toEqual([
      'prepare',
      'optimize',
      'build',
      'ready',
    ]);
    const building = heard.filter(({ phase }) => phase === 'build');
    expect(building.length).toBeGreaterThan(50);
    expect(building.length).toBeLessThanOrEqual(101);
    for (let i = 1; i < building.length; i++) expect(building[i].loaded).toBeGreaterThan(building[i - 1].loaded);
    expect(building.at(-1)).toEqual({ phase: 'build', loaded: nodes.length, total: nodes.length });
    for (const { phase, loaded, total } of heard.filter(({ phase }) => phase !== 'build'))
      expect({ phase, loaded, total }).toEqual({ phase, loaded: bytes.length, total: bytes.length });
    await session.release();
  });

  it('is heard to its end however quick the load is', async () => {
    const bytes = slow(50);
    for (let i = 0; i < 200; i++) {
      const heard: any[] = [];
      const session = await InferenceSession.create(bytes, { onProgress: (progress: any) => heard.push(progress) });
      expect(heard.slice(-2).map(({ phase, loaded }) => ({ phase, loaded }))).toEqual([
        { phase: 'build', loaded: 50 },
        { phase: 'ready', loaded: bytes.length },
      ]);
      expect(heard.length).toBe(53);
      await session.release();
    }
  });

  it('ends where the load fails, and a listener that throws does not end it', async () => {
    const phases: string[] = [];
    const failure = await failureOf(() =>
      InferenceSession.create(Uint8Array.of(1, 2, 3), { onProgress: ({ phase }: any) => phases.push(phase) }),
    );
    expect(failure.code).toBe('INVALID_MODEL');
    expect(phases).toEqual(['prepare']);
    const thrown: unknown[] = [];
    const hear = (error: unknown) => thrown.push(error);
    const before = process.listeners('uncaughtException');
    process.removeAllListeners('uncaughtException');
    process.on('uncaughtException', hear);
    try {
      const session = await InferenceSession.create(new Blob([add() as any]), {
        onProgress: ({ phase }: any) => {
          throw new Error(phase);
        },
      });
      expect(session.inputNames).toEqual(['a', 'b']);
      await session.release();
    } finally {
      process.removeListener('uncaughtException', hear);
      for (const listener of before) process.on('uncaughtException', listener);
    }
    const thrownIn = new Set(thrown.map((error: any) => error.message));
    expect(thrownIn).toEqual(new Set(['read', 'prepare', 'optimize', 'build', 'ready']));
  });
});
