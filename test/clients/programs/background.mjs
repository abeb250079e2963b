// @imgly/background-removal-node cuts what stands before the background out of the picture that PICTURE names: how much
// of it there is in each cell of a grid of 8 x 8.
import { pathToFileURL } from 'node:url';
import { removeBackground } from '@imgly/background-removal-node';
import sharp from 'sharp';

const cut = await removeBackground(pathToFileURL(process.env.PICTURE).href, { model: 'small' });
const opacity = sharp(Buffer.from(await cut.arrayBuffer())).extractChannel('alpha');
const cells = await opacity.resize(8, 8, { fit: 'fill', kernel: 'linear' }).raw().toBuffer();
console.log(JSON.stringify({ type: cut.type, cells: [...cells] }));
