// Which symbol a few hand-drawn strokes show.
import { readFileSync } from 'node:fs';

const side = 224;

/** White lines, 8 pixels wide, on black: the drawing fills the square but for a margin of 10. */
export function drawStrokes(strokes) {
  const points = strokes.flat();
  const [xs, ys] = [points.map((p) => p[0]), points.map((p) => p[1])];
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const scale = (side - 20) / Math.max(right - left, bottom - top);
  const place = ([x, y]) => [(x - (left + right) / 2) * scale + side / 2, (y - (top + bottom) / 2) * scale + side / 2];
  const image = new Float32Array(side * side);
  for (const stroke of strokes) {
    const line = stroke.map(place);
    for (let i = 1; i < line.length; i++) drawLine(image, line[i - 1], line[i]);
  }
  return image;
}

function drawLine(image, [x0, y0], [x1, y1]) {
  const [dx, dy] = [x1 - x0, y1 - y0];
  const length = dx * dx + dy * dy || 1;
  for (let y = 0; y < side; y++) {
    for (let x = 0; x < side; x++) {
      const [px, py] = [x + 0.5 - x0, y + 0.5 - y0];
      const t = Math.min(1, Math.max(0, (px * dx + py * dy) / length));
      const covered = 4.5 - Math.hypot(px - t * dx, py - t * dy); // soft edge of one pixel
      image[y * side + x] = Math.max(image[y * side + x], Math.min(1, Math.max(0, covered)));
    }
  }
}

/** @returns {Promise<string>} the likeliest character */
export async function classifyStrokes(ort, { model, labels }, strokes, options) {
  const session = await ort.InferenceSession.create(model, options);
  const input = new ort.Tensor('float32', drawStrokes(strokes), [1, 1, side, side]);
  const { linear } = await session.run({ x: input });
  await session.release();
  return JSON.parse(readFileSync(labels, 'utf8'))[linear.data.indexOf(Math.max(...linear.data))].char;
}
