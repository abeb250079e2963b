// ppu-paddle-ocr reads the picture that PICTURE names, by the models of another package.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { PaddleOcrService } from 'ppu-paddle-ocr';

const asset = (name) => resolve('node_modules', '@gutenye', 'ocr-models', 'assets', name);
// Its dictionaries have an entry for no character, the first, and one for the space, the last.
const keys = readFileSync(asset('ppocr_keys_v1.txt'), 'utf8').trimEnd();
const charactersDictionary = new TextEncoder().encode(`blank\n${keys}\n<space>`).buffer;
const service = new PaddleOcrService({
  model: {
    detection: asset('ch_PP-OCRv4_det_infer.onnx'),
    recognition: asset('ch_PP-OCRv4_rec_infer.onnx'),
    charactersDictionary,
  },
});
await service.initialize();
const picture = readFileSync(process.env.PICTURE);
const bytes = picture.buffer.slice(picture.byteOffset, picture.byteOffset + picture.byteLength);
const { results } = await service.recognize(bytes, { flatten: true });
await service.destroy();
console.log(JSON.stringify(results));
