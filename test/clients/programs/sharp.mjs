// Tensors of the picture PICTURE as infernode makes them by way of sharp, each with how far it is from sharp's own.
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { Tensor } from 'infernode';
import sharp from 'sharp';

const { PICTURE } = process.env;
const rgb = (picture) => picture.removeAlpha().toColourspace('srgb').raw().toBuffer();

/** Largest and mean difference, in steps of 8 bits. */
function distance(tensor, pixels, valueOf = (value) => value) {
  let [largest, sum] = [0, 0];
  for (const [i, value] of tensor.data.entries()) {
    const difference = Math.abs(valueOf(value, i) - pixels[i]);
    largest = Math.max(largest, difference);
    sum += difference;
  }
  return { dims: tensor.dims, alike: tensor.data.length === pixels.length, largest, mean: sum / pixels.length };
}

const bytes = { dataType: 'uint8', tensorLayout: 'NHWC' };
const whole = await rgb(sharp(PICTURE));
const small = { resizedWidth: 224, resizedHeight: 200 };
const answers = {};

for (const [name, source] of Object.entries({
  path: PICTURE,
  URL: pathToFileURL(PICTURE),
  Buffer: readFileSync(PICTURE),
  'data URL': `data:image/png;base64,${readFileSync(PICTURE, 'base64')}`,
  '16 bits': await sharp(PICTURE).toColourspace('rgb16').png().toBuffer(),
  alpha: await sharp(PICTURE).ensureAlpha().webp({ lossless: true }).toBuffer(),
})) {
  answers[name] = distance(await Tensor.fromImage(source, bytes), whole);
}

answers.resized = distance(
  await Tensor.fromImage(PICTURE, { ...bytes, ...small }),
  await rgb(sharp(PICTURE).resize(224, 200, { fit: 'fill', kernel: 'linear' })),
);
// Half the width, and the middle half of the height: cut before or after, it is the same.
const half = { resizedWidth: 380, resizedHeight: 240 };
answers.covered = distance(
  await Tensor.fromImage(readFileSync(PICTURE), { ...bytes, ...half, fit: 'cover' }),
  await rgb(sharp(PICTURE).resize(380, 240, { fit: 'cover', kernel: 'linear' })),
);
const part = { left: 96, top: 36, width: 568, height: 736 };
answers.cropped = distance(
  await Tensor.fromImage(PICTURE, { ...bytes, ...small, crop: { x: 96, y: 36, width: 568, height: 736 } }),
  await rgb(sharp(PICTURE).extract(part).resize(224, 200, { fit: 'fill', kernel: 'linear' })),
);
const [mean, std] = [
  [0.485, 0.456, 0.406],
  [0.229, 0.224, 0.225],
];
answers.normalised = distance(
  await Tensor.fromImage(PICTURE, { ...small, tensorLayout: 'NHWC', normalize: { mean, std } }),
  await rgb(sharp(PICTURE).resize(224, 200, { fit: 'fill', kernel: 'linear' })),
  (value, i) => (value * std[i % 3] + mean[i % 3]) * 255,
);
const turned = await sharp(PICTURE).withMetadata({ orientation: 6 }).png().toBuffer();
answers.turned = distance(await Tensor.fromImage(turned, bytes), await rgb(sharp(PICTURE).rotate(90)));

const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="2" height="1"><rect width="2" height="1" fill="red"/></svg>';
answers.text = [...(await Tensor.fromImage(`data:image/svg+xml,${encodeURIComponent(svg)}`, bytes)).data];

const failure = (source) => Tensor.fromImage(source).then(
  () => 'none',
  ({ code, message, path }) => ({ code, message, path }),
);
answers.missing = await failure('nowhere.png');
answers.damaged = await failure(Buffer.from('no picture'));
console.log(JSON.stringify(answers));
