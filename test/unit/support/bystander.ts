import { afterEach, beforeAll, expect } from 'vitest';
import { floats, ort } from '../../fixtures/engine.js';
import { add } from '../../fixtures/models.js';

/** A session that each test of a file leaves as it was: nothing that goes wrong in one session may touch another. */
export function withBystander(): { session: any } {
  const bystander: { session: any } = { session: undefined };
  beforeAll(async () => {
    bystander.session = await ort.InferenceSession.create(add(), { logSeverityLevel: 4 });
  });
  afterEach(async () => {
    const { c } = await bystander.session.run({ a: floats([1, 2]), b: floats([10, 20]) });
    expect([...c.data]).toEqual([11, 22]);
  });
  return bystander;
}
