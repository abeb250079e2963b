import { describe, expect, it } from 'vitest';
import { prepare, sample, supported } from '../../failing-memory/sweep.mjs';

describe.runIf(supported)('A failed allocation ends or hangs the process', () => {
  it('never: requests for memory and threads that fail end in errors or right answers', async () => {
    const tools = await prepare();
    const { cases, outcomes, faults } = await sample(tools, { models: tools.names, count: 8, cold: 6 });
    expect(faults).toEqual([]);
    expect(cases).toBeGreaterThan(300);
    expect(outcomes.OUT_OF_MEMORY).toBeGreaterThan(cases / 2);
  }, 600_000);
});
