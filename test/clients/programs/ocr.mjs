// @gutenye/ocr-node (an ES module; its tensors are onnxruntime-common's) reads the picture that PICTURE names.
import Ocr from '@gutenye/ocr-node';

const ocr = await Ocr.create();
const lines = await ocr.detect(process.env.PICTURE);
console.log(JSON.stringify(lines.map(({ text }) => text)));
