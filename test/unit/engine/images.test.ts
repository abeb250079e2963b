import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
// @ts-expect-error it has no declarations
import { PNG } from 'pngjs';
import { describe, expect, it } from 'vitest';
import type * as Infernode from '../../../src/index.js';
import { projectRoot } from '../../../scripts/lib/engine.mjs';
import { decodingFailure } from '../../../src/image/image-source.js';
import { failureOf, ort, ours, tensor } from '../../fixtures/engine.js';

const { Tensor } = ort as typeof Infernode;

/** A picture whose pixel at x, y is [x, y, 7] or [x, y, 7, 200]. */
function picture(width: number, height: number, channels: 3 | 4 = 4): Infernode.ImageLike {
  const data = new Uint8ClampedArray(width * height * channels);
  for (let i = 0; i < width * height; i++) {
    data.set([i % width, Math.floor(i / width), 7, 200].slice(0, channels), i * channels);
  }
  return { data, width, height };
}

/** What a resize with antialias gives, computed as it is defined: the average by a triangle around each center. */
function resized(values: number[][], height: number, width: number): number[][] {
  const line = (from: number[], to: number): number[] =>
    Array.from({ length: to }, (_, i) => {
      const scale = from.length / to;
      const support = Math.max(1, scale);
      let [sum, weights] = [0, 0];
      from.forEach((value, j) => {
        const weight = Math.max(0, 1 - Math.abs((j + 0.5 - (i + 0.5) * scale) / support));
        sum += weight * value;
        weights += weight;
      });
      return sum / weights;
    });
  const turned = (rows: number[][]): number[][] => rows[0]!.map((_, i) => rows.map((row) => row[i]!));
  const wide = values.map((row) => line(row, width));
  return turned(turned(wide).map((column) => line(column, height)));
}

describe.runIf(ours)('Tensor.fromImage', () => {
  it('takes RGBA and RGB pixels and ImageData-like objects', async () => {
    for (const channels of [3, 4] as const) {
      const image = picture(3, 2, channels);
      const made = await Tensor.fromImage(image, { norm: { mean: 1 } });
      expect(made).toMatchObject({ type: 'float32', dims: [1, 3, 2, 3] });
      expect([...made.data]).toEqual([0, 1, 2, 0, 1, 2, 0, 0, 0, 1, 1, 1, 7, 7, 7, 7, 7, 7]);
      const bare = await Tensor.fromImage(image.data, { width: 3, height: 2, norm: { mean: 1 } });
      expect([...bare.data]).toEqual([...made.data]);
    }
    const usual = await Tensor.fromImage({ data: Uint8Array.of(255, 51, 0), width: 1, height: 1 });
    expect([...usual.data].map((value) => value.toFixed(4))).toEqual(['1.0000', '0.2000', '0.0000']);
  });

  it('has formats, layouts and types', async () => {
    const image = { data: Uint8Array.of(1, 2, 3, 4, 5, 6), width: 2, height: 1 };
    const of = async (options: any): Promise<number[]> => [...(await Tensor.fromImage(image, { dataType: 'uint8', ...options })).data]; // prettier-ignore
    expect(await of({})).toEqual([1, 4, 2, 5, 3, 6]);
    expect(await of({ tensorLayout: 'NHWC' })).toEqual([1, 2, 3, 4, 5, 6]);
    expect(await of({ tensorFormat: 'BGR' })).toEqual([3, 6, 2, 5, 1, 4]);
    expect(await of({ tensorFormat: 'RGBA', tensorLayout: 'NHWC' })).toEqual([1, 2, 3, 255, 4, 5, 6, 255]);
    expect(await of({ format: 'BGR' })).toEqual([3, 6, 2, 5, 1, 4]);
    const gray = await Tensor.fromImage({ data: Uint8Array.of(9), width: 1, height: 1 }, { dataType: 'uint8' });
    expect([gray.type, gray.dims, ...gray.data]).toEqual(['uint8', [1, 3, 1, 1], 9, 9, 9]);
  });

  it('resizes, crops and normalises in one pass', async () => {
    const [width, height] = [37, 23];
    const image = picture(width, height);
    for (const [w, h] of [
      [10, 7],
      [80, 50],
      [37, 5],
      [1, 1],
      [16, 23],
    ] as const) {
      // prettier-ignore
      const made = await Tensor.fromImage(image, { resizedWidth: w, resizedHeight: h, norm: { mean: 1 } });
      expect(made.dims).toEqual([1, 3, h, w]);
      const columns = resized(
        Array.from({ length: height }, () => Array.from({ length: width }, (_, x) => x)),
        h,
        w,
      );
      const rows = resized(
        Array.from({ length: height }, (_, y) => new Array<number>(width).fill(y)),
        h,
        w,
      );
      [...columns.flat(), ...rows.flat()].forEach((value, i) => expect(made.data[i]).toBeCloseTo(value, 3));
    }
    const crop = { x: 5, y: 3, width: 4, height: 2 };
    const part = await Tensor.fromImage(image, { crop, dataType: 'uint8', tensorLayout: 'NHWC' });
    expect([...part.data].filter((_, i) => i % 3 === 0)).toEqual([5, 6, 7, 8, 5, 6, 7, 8]);
    expect([...part.data].filter((_, i) => i % 3 === 1)).toEqual([3, 3, 3, 3, 4, 4, 4, 4]);
    const cover = await Tensor.fromImage(picture(8, 4), { resizedWidth: 4, resizedHeight: 4, fit: 'cover', norm: { mean: 1 } }); // prettier-ignore
    expect([...cover.data.slice(0, 4)]).toEqual([2, 3, 4, 5]);
    const nearest = await Tensor.fromImage(picture(4, 1), { resizedWidth: 2, method: 'nearest', norm: { mean: 1 } });
    expect([...nearest.data.slice(0, 2)]).toEqual([1, 3]);
    const normal = await Tensor.fromImage(
      { data: Uint8Array.of(255, 0, 51), width: 1, height: 1 },
      { normalize: { mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] } },
    );
    [(1 - 0.485) / 0.229, -0.456 / 0.224, (0.2 - 0.406) / 0.225].forEach((value, i) => expect(normal.data[i]).toBeCloseTo(value, 5)); // prettier-ignore
  });

  it.each<['NCHW' | 'NHWC', 'float32' | 'uint8', 'RGB' | 'RGBA' | 'BGR', 3 | 4, number, number]>([
    ['NCHW', 'float32', 'RGB', 4, 20, 30],
    ['NCHW', 'float32', 'BGR', 3, 50, 33],
    ['NHWC', 'float32', 'RGB', 3, 17, 40],
    ['NHWC', 'float32', 'RGBA', 3, 101, 9],
    ['NCHW', 'uint8', 'RGB', 3, 30, 90],
    ['NHWC', 'uint8', 'BGR', 4, 71, 19],
    ['NCHW', 'float32', 'RGB', 4, 31, 100],
    ['NHWC', 'float32', 'RGBA', 4, 1, 1],
  ])(
    'crops, resizes and normalises in one call as is defined: %s %s %s of %i channels to %i x %i',
    async (tensorLayout, dataType, tensorFormat, channels, w, h) => {
      const [width, height, crop] = [61, 53, { x: 7, y: 4, width: 50, height: 45 }];
      const data = Uint8Array.from({ length: width * height * channels }, (_, i) => (i * 2654435761) >>> 24);
      const [mean, std] = [[0.485, 0.456, 0.406, 0.5], [0.229, 0.224, 0.225, 0.25]]; // prettier-ignore
      const float = dataType === 'float32';
      const rgba = tensorFormat === 'RGBA';
      const normalize = rgba ? { mean, std } : { mean: mean.slice(0, 3), std: std.slice(0, 3) };
      const size = { resizedWidth: w, resizedHeight: h };
      const options: any = { crop, ...size, tensorLayout, dataType, tensorFormat, ...(float && { normalize }) };
      const made: Infernode.Tensor = await Tensor.fromImage({ data, width, height }, options);
      const order = { RGB: [0, 1, 2], RGBA: [0, 1, 2, 3], BGR: [2, 1, 0] }[tensorFormat];
      order.forEach((channel, place) => {
        const at = (x: number, y: number) => data[(y * width + x) * channels + channel]!;
        const rows = Array.from({ length: crop.height }, (_, y) =>
          Array.from({ length: crop.width }, (_, x) => (channel < channels ? at(x + crop.x, y + crop.y) : 255)),
        );
        const wanted = resized(rows, h, w).flat();
        const apart = wanted.map((value, i) => {
          const got = Number(made.data[tensorLayout === 'NCHW' ? place * w * h + i : i * order.length + place]);
          return Math.abs(got - (float ? (value / 255 - mean[channel]!) / std[channel]! : value));
        });
        expect(Math.max(...apart)).toBeLessThan(float ? 1e-5 : 0.5001);
      });
    },
  );

  it('makes a batch of several', async () => {
    const pictures = [picture(4, 2), { data: new Uint8Array(24).fill(9), width: 4, height: 2 }];
    const batch = await Tensor.fromImage(pictures, { dataType: 'uint8' });
    expect([batch.type, batch.dims]).toEqual(['uint8', [2, 3, 2, 4]]);
    const apart = await Promise.all(pictures.map((each) => Tensor.fromImage(each, { dataType: 'uint8' })));
    expect([...batch.data]).toEqual(apart.flatMap(({ data }) => [...data]));
    const sizes = { resizedWidth: 2, resizedHeight: 2, tensorLayout: 'NHWC' } as const;
    expect((await Tensor.fromImage([picture(4, 2), picture(3, 5)], sizes)).dims).toEqual([2, 2, 2, 3]);
    const apartInSize = await failureOf(() => Tensor.fromImage([picture(4, 2), picture(3, 5)]));
    expect(apartInSize).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(/^Image 1 becomes \[1,3,5,3\], the first one \[1,3,2,4\]\. .*resizedWidth/) }); // prettier-ignore
    expect(await failureOf(() => Tensor.fromImage([]))).toBeInstanceOf(TypeError);
    expect(await failureOf(() => Tensor.fromImage([1, 2] as any))).toBeInstanceOf(TypeError);
  });

  it('refuses what is no picture', async () => {
    const of = (source: any, options?: any) => failureOf(() => Tensor.fromImage(source, options));
    for (const source of [5, null, {}, { data: [1], width: 1, height: 1 }, new Float32Array(3)]) {
      expect(await of(source)).toBeInstanceOf(TypeError);
    }
    expect(await of({ data: new Uint8Array(5), width: 2, height: 1 })).toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(await of(picture(2, 2), { crop: { x: 1, y: 0, width: 2, height: 1 } })).toBeInstanceOf(RangeError);
    expect(await of(picture(2, 2), { resizedWidth: 1e6, resizedHeight: 1e6 })).toMatchObject({
      code: 'INVALID_ARGUMENT',
    });
    expect(await of(picture(2, 2), { tensorFormat: 'CMYK' })).toBeInstanceOf(TypeError);
    expect(await of(picture(2, 2), { norm: { mean: ['1'] } })).toBeInstanceOf(TypeError);
    expect(await of(picture(2, 2), { norm: {}, normalize: { mean: 0, std: 1 } })).toBeInstanceOf(TypeError);
    expect(await of(picture(2, 2), { normalize: 'imagenet' })).toBeInstanceOf(TypeError);
    expect(await of(new URL('https://localhost/x.png'))).toBeInstanceOf(TypeError);
    const ofSharp = await of({ data: new Uint8Array(12), info: { width: 2, height: 2, channels: 3 } });
    expect(ofSharp.message).toContain('is given as { data, ...info }');
  });

  it('decodes files through sharp, or says that it is to be installed', async () => {
    const path = join(projectRoot, 'examples', 'ocr', 'picture.png');
    const outcome = await Tensor.fromImage(path, { dataType: 'uint8', tensorLayout: 'NHWC' }).catch(
      (error: any) => error,
    );
    if (!existsSync(join(projectRoot, 'node_modules', 'sharp'))) {
      expect(outcome).toMatchObject({ code: 'IO', message: expect.stringMatching(/npm install sharp/) });
      return;
    }
    const { width, height } = PNG.sync.read(readFileSync(path));
    expect(outcome.dims).toEqual([1, height, width, 3]);
    const blob = new Blob([readFileSync(path)]);
    const same = await Tensor.fromImage(blob, { dataType: 'uint8', tensorLayout: 'NHWC' });
    expect([...same.data]).toEqual([...outcome.data]);
  });
});

describe('the error of a picture of which sharp makes nothing', () => {
  const of = (picture: string | Uint8Array, reason: string) => decodingFailure(picture, new Error(reason));

  it("is the caller's, with a hint of pixels where it has no format at all", async () => {
    const unknown = 'Input buffer contains unsupported image format';
    const message = `The picture cannot be decoded: ${unknown}. Pixels need the options width and height`;
    expect(await of(new Uint8Array(3), unknown)).toMatchObject({ code: 'INVALID_ARGUMENT', message });
    const cut = await of(new Uint8Array(3), 'premature end of JPEG image');
    expect(cut).toMatchObject({ code: 'INVALID_ARGUMENT', message: 'The picture cannot be decoded: premature end of JPEG image' }); // prettier-ignore
    const path = join(projectRoot, 'package.json');
    expect(await of(path, 'no format')).toMatchObject({ code: 'INVALID_ARGUMENT', path, message: `The picture ${path} cannot be decoded: no format` }); // prettier-ignore
  });

  it('is IO where the file cannot be read', async () => {
    expect(await of('nowhere.png', 'Input file is missing')).toMatchObject({ code: 'IO', path: 'nowhere.png', message: expect.stringMatching(/^The picture nowhere\.png cannot be read: ENOENT/) }); // prettier-ignore
    expect(await of(projectRoot, 'unsupported')).toMatchObject({ code: 'IO', message: `The picture ${projectRoot} cannot be read: it is a folder` }); // prettier-ignore
  });
});

describe.runIf(ours)('Tensor.fromImage, too', () => {
  const pixel = { data: Uint8Array.of(1, 2, 3, 4), width: 1, height: 1 };

  it('reads pixels at the call', async () => {
    const frame = { ...pixel, data: new Uint8Array(4).fill(7) };
    const made = Tensor.fromImage(frame, { dataType: 'uint8' });
    frame.data.fill(9);
    expect([...(await made).data]).toEqual([7, 7, 7]);
    const other = Tensor.fromImage(frame, { dataType: 'uint8' });
    structuredClone(frame.data.buffer, { transfer: [frame.data.buffer] });
    expect([...(await other).data]).toEqual([9, 9, 9]);
  });

  it('is ended by a signal', async () => {
    const controller = new AbortController();
    const large = picture(3000, 3000);
    const made = failureOf(() => Tensor.fromImage(large, { resizedWidth: 6000, resizedHeight: 6000, signal: controller.signal })); // prettier-ignore
    controller.abort();
    expect(await made).toMatchObject({ code: 'ABORTED', name: 'AbortError', cause: controller.signal.reason });
    expect(await failureOf(() => Tensor.fromImage(pixel, { signal: controller.signal }))).toMatchObject({
      code: 'ABORTED',
    });
  });

  it.each<[string, any, string]>([
    ['null', null, 'TypeError'],
    ['a mean of 0', { norm: { mean: 0 } }, 'RangeError'],
    ['a mean of NaN', { norm: { mean: [1, NaN, 1] } }, 'RangeError'],
    ['a deviation of 0', { normalize: { mean: 0, std: 0 } }, 'RangeError'],
    ['a number for norm', { norm: 5 }, 'TypeError'],
    ['a text for normalize', { normalize: 'imagenet' }, 'TypeError'],
    ['a number for crop', { crop: 5 }, 'TypeError'],
  ])('refuses %s among its options', async (_, options, name) => {
    expect(await failureOf(() => Tensor.fromImage(pixel, options))).toMatchObject({ name, code: 'INVALID_ARGUMENT' });
  });

  it('says what is wrong of a source, but not all of it', async () => {
    const bare = await failureOf(() => Tensor.fromImage(pixel.data, { height: 1 }));
    expect(bare).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('width') });
    const text = await failureOf(() => Tensor.fromImage({ ...pixel, width: '1' } as any));
    expect(text.message).toMatch(/from 1 on, got string/);
    const url = await failureOf(() => Tensor.fromImage(new URL('file://host/x.png')));
    if (process.platform !== 'win32') expect(url).toMatchObject({ name: 'TypeError', code: 'INVALID_ARGUMENT' });
    const long = await failureOf(() => Tensor.fromImage('A'.repeat(300_000)));
    expect(long.message.length).toBeLessThan(1000);
  });
});

describe.runIf(ours)('a tensor as a picture', () => {
  it('has the values of its type, or is refused', () => {
    const dims = [1, 3, 1, 1];
    const pixels = (type: any, data: any, options?: any) => [...tensor(type, data, dims).toImageData(options).data];
    expect(pixels('float16', Uint16Array.of(0, 0x3800, 0x3c00))).toEqual([0, 128, 255, 255]);
    expect(pixels('bfloat16', Uint16Array.of(0, 0x3f00, 0x3f80))).toEqual([0, 128, 255, 255]);
    expect(pixels('int64', BigInt64Array.of(1n, 2n, 3n), { norm: { mean: 1 } })).toEqual([1, 2, 3, 255]);
    const refused: [type: any, data: any][] = [
      ['string', ['a', 'b', 'c']],
      ['int4', Uint8Array.of(0x21, 3)],
      ['complex64', new Float32Array(6)],
      ['float8e5m2', new Uint8Array(3)],
    ];
    for (const [type, data] of refused) expect(() => pixels(type, data), type).toThrow(/makes no picture/);
    expect(() => pixels('float32', new Float32Array(3), null)).toThrow(/'options' must be an object/);
    expect(() => pixels('float32', new Float32Array(3), { norm: { mean: 'x' } })).toThrow(
      /'norm.mean' must be a number/,
    );
    expect(() => pixels('float32', new Float32Array(3), { norm: { mean: NaN } })).toThrow(/must be finite/);
    expect(() => tensor('float32', new Float32Array(0), [1, 3, 0, 0]).toDataURL()).toThrow(/without pixels/);
  });

  const pixels = [0, 1, 0.2, 0.4, 1, 0]; // two pixels, channel by channel

  it('toImageData gives RGBA', () => {
    const made = tensor('float32', Float32Array.from(pixels), [1, 3, 1, 2]).toImageData();
    expect(made).toMatchObject({ width: 2, height: 1 });
    expect([...made.data]).toEqual([0, 51, 255, 255, 255, 102, 0, 255]);
    const bytes = tensor('uint8', Uint8Array.of(1, 2, 3, 4), [1, 1, 1, 4]);
    expect([...bytes.toImageData({ tensorLayout: 'NHWC' }).data]).toEqual([1, 2, 3, 4]);
    expect([...bytes.toImageData({ tensorLayout: 'NHWC', format: 'BGR' }).data]).toEqual([3, 2, 1, 4]);
    const gray = tensor('uint8', Uint8Array.of(9, 8), [1, 1, 1, 2]);
    expect([...gray.toImageData().data]).toEqual([9, 9, 9, 255, 8, 8, 8, 255]);
    expect(() => tensor('float32', Float32Array.of(1, 2), [2]).toImageData()).toThrow(/no picture/);
  });

  it('toDataURL gives a PNG that others read', () => {
    const made = tensor('float32', Float32Array.from(pixels), [1, 3, 1, 2]);
    const url: string = made.toDataURL();
    const png = PNG.sync.read(Buffer.from(url.replace('data:image/png;base64,', ''), 'base64'));
    expect([png.width, png.height, ...png.data]).toEqual([2, 1, ...made.toImageData().data]);
  });

  it('comes back as it was', async () => {
    const image = picture(5, 3);
    const back = (await Tensor.fromImage(image, { tensorFormat: 'RGBA' })).toImageData();
    expect([...back.data]).toEqual([...image.data]);
    const normalize = { mean: [0.485, 0.456, 0.406, 0], std: [0.229, 0.224, 0.225, 1] };
    const normal = await Tensor.fromImage(image, { tensorFormat: 'RGBA', normalize });
    expect([...normal.toImageData({ normalize }).data]).toEqual([...image.data]);
    expect(() => normal.toImageData({ normalize, norm: { mean: 1 } })).toThrow(/exclude each other/);
  });
});
