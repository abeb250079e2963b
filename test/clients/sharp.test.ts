import { join } from 'node:path';
import { expect, it } from 'vitest';
import { projectRoot } from '../../scripts/lib/engine.mjs';
import { available } from '../fixtures/available.js';
import { ours } from '../fixtures/engine.js';
import { install, output } from './install.js';

const program = (): Promise<string> => install({ dependencies: { sharp: '0.34.5' } });

it.runIf(ours)('Tensor.fromImage reads files through sharp, and resizes as sharp does', async (context) => {
  const folder = await available(context, 'sharp', program);
  const PICTURE = join(projectRoot, 'examples', 'ocr', 'picture.png');
  const { missing, damaged, ...made } = await output(folder, 'sharp.mjs', { PICTURE });
  const exact = (height: number, width: number) => ({ dims: [1, height, width, 3], alike: true, largest: 0, mean: 0 });
  for (const name of ['path', 'URL', 'Buffer', 'data URL', '16 bits', 'alpha'])
    expect(made[name], name).toEqual(exact(960, 760));
  expect(made.text).toEqual([255, 0, 0, 255, 0, 0]);
  expect(made.turned).toEqual(exact(760, 960));
  for (const name of ['resized', 'covered', 'cropped', 'normalised']) {
    const dims = name === 'covered' ? [1, 240, 380, 3] : [1, 200, 224, 3];
    expect(made[name], name).toMatchObject({ dims, alike: true });
    expect(made[name].mean, name).toBeLessThan(0.5); // of 255
    // sharp resizes before it cuts to 'cover': at the cut edges its rows see what lies beyond.
    expect(made[name].largest, name).toBeLessThan(name === 'covered' ? 30 : 12);
  }
  expect(missing).toEqual({ code: 'IO', path: 'nowhere.png', message: expect.stringMatching(/nowhere\.png cannot be read: ENOENT/) }); // prettier-ignore
  expect(damaged).toEqual({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(/^The picture cannot be decoded: /) });
});
