import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OpenvinoProcess, openvinoPython } from '../../bench/models/openvino.mjs';
import { openvinoSide } from '../../bench/models/sides.mjs';
import { architecture, checks } from '../../bench/architectures/workloads.mjs';
import { available } from '../fixtures/available.js';
import { type Values, withEngine, worstError } from './agreement.js';

const workload = checks.find(({ name }) => name === 'rnn_tagger')!;
const feeds = workload.inputs(3) as Values;

async function answers(path: string): Promise<Values> {
  return withEngine('infernode', {}, async (engine) => {
    const { id } = await engine.create(path, {});
    return (await engine.run(id, feeds)) as Values;
  });
}

describe('OpenVINO as the peer of the benchmark', () => {
  let path: string;
  let ours: Values;
  beforeAll(async () => {
    path = await architecture(workload.model);
    ours = await answers(path);
  });

  it('agrees in float32, and says how long each run takes', async (context) => {
    await available(context, 'OpenVINO', openvinoPython);
    const side = await openvinoSide(path, feeds, { names: Object.keys(ours), threads: 1, precision: 'f32' });
    try {
      expect(Object.keys(side.outputs)).toEqual(Object.keys(ours));
      expect(worstError(ours, side.outputs as Values).error).toBeLessThan(1e-4);
      const times = await side.time(3);
      expect(times).toHaveLength(3);
      expect(Math.min(...times)).toBeGreaterThan(0);
    } finally {
      await side.stop();
    }
  });

  it('is timed in bfloat16 while its answers are those of float32', async (context) => {
    await available(context, 'OpenVINO', openvinoPython);
    const side = await openvinoSide(path, feeds, { names: Object.keys(ours), threads: 1, precision: 'bf16' });
    await side.stop();
    expect(worstError(ours, side.outputs as Values).error).toBeLessThan(1e-4);
  });

  describe('told of what it cannot do', () => {
    let engine: OpenvinoProcess | undefined;
    afterAll(() => engine?.stop());

    it('says so and goes on', async (context) => {
      await available(context, 'OpenVINO', openvinoPython);
      engine = await OpenvinoProcess.start();
      await expect(engine.create('no-such-file.onnx', { threads: 1, precision: 'f32' })).rejects.toThrow(
        'no-such-file.onnx',
      );
      const [name] = Object.keys(ours);
      const { id } = await engine.create(path, { threads: 1, precision: 'f32', outputs: [name!] });
      await expect(engine.run(id, feeds, ['no such output'])).rejects.toThrow('no such output');
      expect(Object.keys(await engine.run(id, feeds, [name!]))).toEqual([name]);
    });

    it('rejects what is asked once it has ended', async (context) => {
      await available(context, 'OpenVINO', openvinoPython);
      const ended = await OpenvinoProcess.start();
      await ended.stop();
      await expect(ended.create(path, { threads: 1, precision: 'f32' })).rejects.toThrow('the openvino process ended');
    });
  });
});
