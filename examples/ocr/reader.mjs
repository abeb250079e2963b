// Reads the text in a picture with PP-OCR: find boxes, turn upside-down ones, recognise each line.
import { readFileSync } from 'node:fs';
import { corners, inReadingOrder, textBoxes } from './boxes.mjs';
import { sample } from './image.mjs';

const lineHeight = 48; // what the classifier and the recogniser were trained on

/** RGB values in pixel order -> channel planes, each value (v / 255 - mean) / std; `stride` is the planes' row length. */
function toPlanes(rgb, width, height, mean, std, stride = width) {
  const planes = new Float32Array(3 * height * stride);
  for (let c = 0; c < 3; c++) {
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        planes[(c * height + y) * stride + x] = (rgb[(y * width + x) * 3 + c] / 255 - mean[c]) / std[c];
      }
    }
  }
  return planes;
}

export class TextReader {
  #ort;
  #detector;
  #classifier;
  #recogniser;
  #characters;

  /**
   * @param {{ InferenceSession: any, Tensor: any }} ort the engine
   * @param {{ detector: string, recogniser: string, classifier?: string, characters: string | string[] }} files model
   *   paths; `characters` is the recogniser's alphabet, a list or a file with one a line
   * @param {object} [options] session options
   */
  static async load(ort, files, options) {
    const reader = new TextReader();
    reader.#ort = ort;
    const create = (path) => (path ? ort.InferenceSession.create(path, options) : undefined);
    [reader.#detector, reader.#classifier, reader.#recogniser] = await Promise.all(
      [files.detector, files.classifier, files.recogniser].map(create),
    );
    const { characters } = files;
    const keys = Array.isArray(characters)
      ? characters
      : readFileSync(characters, 'utf8')
          .replace(/\r?\n$/, '')
          .split(/\r?\n/);
    reader.#characters = ['', ...keys, ' ']; // class 0 is the blank between characters
    return reader;
  }

  async #run(session, data, dims) {
    const input = new this.#ort.Tensor('float32', data, dims);
    const outputs = await session.run({ [session.inputNames[0]]: input });
    return outputs[session.outputNames[0]];
  }

  /** Boxes of text, in the picture's pixels and in reading order. */
  async detect(picture, longestSide = 960) {
    const scale = Math.min(2, longestSide / Math.max(picture.width, picture.height)); // small print is seen better enlarged
    const fit = (side) => Math.max(32, Math.round((side * scale) / 32) * 32);
    const [width, height] = [fit(picture.width), fit(picture.height)];
    const rgb = sample(picture, [0, 0], [picture.width, 0], [0, picture.height], width, height);
    const input = toPlanes(rgb, width, height, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
    const map = await this.#run(this.#detector, input, [1, 3, height, width]);
    const [sx, sy] = [picture.width / width, picture.height / height];
    const boxes = textBoxes(map.data, width, height).map((box) => ({
      ...box,
      x: box.x * sx,
      y: box.y * sy,
      width: box.width * sx,
      height: box.height * sy,
    }));
    return inReadingOrder(boxes);
  }

  /** The pixels of a box as one line of `lineHeight`, at most `limit` wide, on planes of a width from `padded`. */
  #line(picture, box, upsideDown, padded, limit = Infinity) {
    let [topLeft, topRight, , bottomLeft] = corners(box);
    if (box.height > 1.5 * box.width) [topLeft, topRight, , bottomLeft] = [1, 2, 3, 0].map((i) => corners(box)[i]);
    const minus = (a, b) => [a[0] - b[0], a[1] - b[1]];
    let right = minus(topRight, topLeft);
    let down = minus(bottomLeft, topLeft);
    let origin = topLeft;
    if (upsideDown) {
      origin = [origin[0] + right[0] + down[0], origin[1] + right[1] + down[1]];
      [right, down] = [minus([0, 0], right), minus([0, 0], down)];
    }
    const width = Math.min(limit, Math.max(1, Math.ceil((lineHeight * Math.hypot(...right)) / Math.hypot(...down))));
    const stride = padded(width);
    const rgb = sample(picture, origin, right, down, width, lineHeight);
    return { data: toPlanes(rgb, width, lineHeight, [0.5, 0.5, 0.5], [0.5, 0.5, 0.5], stride), width: stride };
  }

  /** For each box, whether its text stands on its head. */
  async #upsideDown(picture, boxes) {
    if (!this.#classifier || !boxes.length) return boxes.map(() => false);
    const width = 192;
    const batch = new Float32Array(boxes.length * 3 * lineHeight * width);
    boxes.forEach((box, i) => {
      batch.set(this.#line(picture, box, false, () => width, width).data, i * 3 * lineHeight * width);
    });
    const { data } = await this.#run(this.#classifier, batch, [boxes.length, 3, lineHeight, width]);
    return boxes.map((_, i) => data[2 * i + 1] > 0.9);
  }

  /** Text and confidence of one box. */
  async recognise(picture, box, upsideDown = false) {
    const padded = (width) => Math.max(320, Math.ceil(width / 32) * 32);
    const line = this.#line(picture, box, upsideDown, padded);
    const { data, dims } = await this.#run(this.#recogniser, line.data, [1, 3, lineHeight, line.width]);
    return this.#decode(data, dims[1], dims[2]);
  }

  /** Best class of each time step; repeats and blanks fall away (CTC). Confidence is the mean of what is kept. */
  #decode(probabilities, steps, classes) {
    let text = '';
    let sum = 0;
    let kept = 0;
    let previous = 0;
    for (let t = 0; t < steps; t++) {
      const row = probabilities.subarray(t * classes, (t + 1) * classes);
      let best = 0;
      for (let c = 1; c < classes; c++) if (row[c] > row[best]) best = c;
      if (best !== 0 && best !== previous) {
        text += this.#characters[best] ?? '\ufffd';
        sum += row[best];
        kept++;
      }
      previous = best;
    }
    return { text, confidence: kept ? sum / kept : 0 };
  }

  /**
   * All lines of text in a picture, in reading order.
   * @returns {Promise<{ text: string, confidence: number, corners: number[][] }[]>}
   */
  async read(picture, minimumConfidence = 0.5) {
    const boxes = await this.detect(picture);
    const upsideDown = await this.#upsideDown(picture, boxes);
    const lines = await Promise.all(boxes.map((box, i) => this.recognise(picture, box, upsideDown[i])));
    return lines
      .map((line, i) => ({ ...line, corners: corners(boxes[i]).map((point) => point.map(Math.round)) }))
      .filter((line) => line.text.trim() && line.confidence >= minimumConfidence);
  }

  /** Releases the sessions. */
  async release() {
    await Promise.all([this.#detector, this.#classifier, this.#recogniser].map((session) => session?.release()));
  }
}
