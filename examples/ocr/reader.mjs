// Reads the text in a picture with PP-OCR: find boxes, turn the page and upside-down lines, recognise each line.
import { readFileSync } from 'node:fs';
import { corners, inReadingOrder, textBoxes } from './boxes.mjs';
import { sample } from './image.mjs';
import { storedPoint, upright } from './orientation.mjs';

const lineHeight = 48; // what the classifier and the recogniser were trained on
const classifiedWidth = 192;

/** A box whose text reads down the page. */
const isTall = (box) => box.height > 1.5 * box.width;
const isWide = (box) => box.width > 1.5 * box.height;

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

/** The characters of a text that holds one a line. */
const alphabet = (text) => text.replace(/\r?\n$/, '').split(/\r?\n/);

export class TextReader {
  #ort;
  #detector;
  #classifier;
  #recogniser;
  #characters;

  /**
   * @param {{ InferenceSession: any, Tensor: any }} ort the engine
   * @param {{ detector: string, recogniser: string, classifier?: string, characters?: string | string[] }} files model
   *   paths; `characters` is the recogniser's alphabet, a list or a file with one a line. None: what the model carries
   * @param {object} [options] session options
   */
  static async load(ort, files, options) {
    const reader = new TextReader();
    reader.#ort = ort;
    const create = (path) => (path ? ort.InferenceSession.create(path, options) : undefined);
    [reader.#detector, reader.#classifier, reader.#recogniser] = await Promise.all(
      [files.detector, files.classifier, files.recogniser].map(create),
    );
    const { characters = [] } = files;
    const keys = Array.isArray(characters) ? characters : alphabet(readFileSync(characters, 'utf8'));
    const own = reader.#recogniser.metadata?.custom['character']; // of version 5 and up
    if (!keys.length && !own) throw new Error('the recogniser carries no characters: name the file that does');
    reader.#characters = ['', ...(keys.length ? keys : alphabet(own)), ' ']; // class 0 is the blank between characters
    return reader;
  }

  async #run(session, data, dims) {
    const input = new this.#ort.Tensor('float32', data, dims);
    const outputs = await session.run({ [session.inputNames[0]]: input });
    return outputs[session.outputNames[0]];
  }

  /** Boxes of text, in the picture's pixels and in reading order. A long strip keeps as many pixels as a page has. */
  async detect(picture, longestSide = 960) {
    const { width: across, height: down } = picture;
    const ofPage = Math.max(longestSide / Math.max(across, down), longestSide / Math.sqrt(2 * across * down));
    const scale = Math.min(2, ofPage); // small print is seen better enlarged
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

  /** The pixels of a box as one line of `lineHeight`, its first `limit` columns, on planes of a width from `padded`. */
  #line(picture, box, upsideDown, padded, limit = Infinity) {
    let [topLeft, topRight, , bottomLeft] = corners(box);
    if (isTall(box)) [topLeft, topRight, , bottomLeft] = [1, 2, 3, 0].map((i) => corners(box)[i]);
    const minus = (a, b) => [a[0] - b[0], a[1] - b[1]];
    let right = minus(topRight, topLeft);
    let down = minus(bottomLeft, topLeft);
    let origin = topLeft;
    if (upsideDown) {
      origin = [origin[0] + right[0] + down[0], origin[1] + right[1] + down[1]];
      [right, down] = [minus([0, 0], right), minus([0, 0], down)];
    }
    const whole = Math.max(1, Math.ceil((lineHeight * Math.hypot(...right)) / Math.hypot(...down)));
    const width = Math.min(limit, whole);
    right = right.map((side) => (side * width) / whole);
    const stride = padded(width);
    const rgb = sample(picture, origin, right, down, width, lineHeight);
    return { data: toPlanes(rgb, width, lineHeight, [0.5, 0.5, 0.5], [0.5, 0.5, 0.5], stride), width: stride };
  }

  /** For each box, how sure it is, from 0 to 1, that its text stands on its head. */
  async #upsideDown(picture, boxes) {
    if (!this.#classifier || !boxes.length) return boxes.map(() => 0);
    const width = classifiedWidth;
    const batch = new Float32Array(boxes.length * 3 * lineHeight * width);
    boxes.forEach((box, i) => {
      batch.set(this.#line(picture, box, false, () => width, width).data, i * 3 * lineHeight * width);
    });
    const { data } = await this.#run(this.#classifier, batch, [boxes.length, 3, lineHeight, width]);
    return boxes.map((_, i) => data[2 * i + 1]);
  }

  /** Boxes in reading order, and the orientation (EXIF's 1, 3, 6 or 8) that turns most of the lines upright. */
  async #page(picture) {
    const boxes = await this.detect(picture);
    const upsideDown = await this.#upsideDown(picture, boxes);
    const long = boxes
      .map((box, i) => ({ box, votes: upsideDown[i] - 0.5 }))
      .filter(({ box }) => isTall(box) || isWide(box));
    const tall = long.filter(({ box }) => isTall(box));
    const standing = 2 * tall.length > long.length;
    const turned = (standing ? tall : long).reduce((sum, { votes }) => sum + votes, 0) > 0;
    return { boxes, upsideDown, orientation: standing ? (turned ? 6 : 8) : turned ? 3 : 1 };
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
   * All lines of text in a picture, in reading order, whichever way the page is turned.
   * @returns {Promise<{ text: string, confidence: number, corners: number[][] }[]>} corners from that where the text's
   *   top left is
   */
  async read(picture, minimumConfidence = 0.5) {
    const seen = await this.#page(picture);
    const { orientation } = seen;
    const page = upright(picture, orientation);
    const { boxes, upsideDown } = orientation === 1 ? seen : await this.#page(page);
    const lines = await Promise.all(boxes.map((box, i) => this.recognise(page, box, upsideDown[i] > 0.9)));
    const stored = (point) => storedPoint(point, orientation, picture).map(Math.round);
    return lines
      .map((line, i) => ({ ...line, corners: corners(boxes[i]).map(stored) }))
      .filter((line) => line.text.trim() && line.confidence >= minimumConfidence);
  }

  /** Releases the sessions. */
  async release() {
    await Promise.all([this.#detector, this.#classifier, this.#recogniser].map((session) => session?.release()));
  }
}
