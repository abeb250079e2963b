// From a map of text probabilities to rotated boxes: threshold, connected regions, smallest enclosing rectangles.

/** Convex hull of points [x, y], by the monotone chain method. */
function convexHull(points) {
  const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const turn = (o, a, b) => (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0]);
  const half = (list) => {
    const chain = [];
    for (const point of list) {
      while (chain.length > 1 && turn(chain.at(-2), chain.at(-1), point) <= 0) chain.pop();
      chain.push(point);
    }
    return chain.slice(0, -1);
  };
  return sorted.length < 3 ? sorted : [...half(sorted), ...half(sorted.reverse())];
}

/**
 * The rectangle of least area around points: one of its sides lies along a side of their convex hull.
 * @returns {{ x: number, y: number, width: number, height: number, angle: number }} centre, sides, and the direction of
 *   `width` in radians, from -45 to 45 degrees
 */
export function smallestRectangle(points) {
  const hull = convexHull(points);
  let best = null;
  for (let i = 0; i < hull.length; i++) {
    const [ax, ay] = hull[i];
    const [bx, by] = hull[(i + 1) % hull.length];
    const angle = Math.atan2(by - ay, bx - ax);
    const cos = Math.cos(angle);
    const sin = Math.sin(angle);
    const along = hull.map(([x, y]) => x * cos + y * sin);
    const across = hull.map(([x, y]) => y * cos - x * sin);
    const [left, right, top, bottom] = [
      Math.min(...along),
      Math.max(...along),
      Math.min(...across),
      Math.max(...across),
    ];
    const area = (right - left) * (bottom - top);
    if (best && area >= best.area) continue;
    const u = (left + right) / 2;
    const v = (top + bottom) / 2;
    best = { area, x: u * cos - v * sin, y: u * sin + v * cos, width: right - left, height: bottom - top, angle };
  }
  const { x, y, area: _, ...rest } = best;
  const turns = Math.round(rest.angle / (Math.PI / 2)); // quarter turns swap the sides
  const swapped = turns % 2 !== 0;
  return {
    x,
    y,
    width: swapped ? rest.height : rest.width,
    height: swapped ? rest.width : rest.height,
    angle: rest.angle - (turns * Math.PI) / 2,
  };
}

/** Corners of a rectangle: top left, top right, bottom right, bottom left. */
export function corners({ x, y, width, height, angle }) {
  const cos = Math.cos(angle) / 2;
  const sin = Math.sin(angle) / 2;
  return [
    [-1, -1],
    [1, -1],
    [1, 1],
    [-1, 1],
  ].map(([u, v]) => [x + u * width * cos - v * height * sin, y + u * width * sin + v * height * cos]);
}

/** Connected regions (8 neighbours) of values above the threshold, each as the outline points of its pixel rows. */
function regions(map, width, height, threshold) {
  const seen = new Uint8Array(map.length);
  const found = [];
  for (let start = 0; start < map.length; start++) {
    if (seen[start] || map[start] <= threshold) continue;
    const rows = new Map(); // row -> [leftmost, rightmost] pixel
    const stack = [start];
    seen[start] = 1;
    while (stack.length) {
      const at = stack.pop();
      const x = at % width;
      const y = (at - x) / width;
      const row = rows.get(y);
      if (!row) rows.set(y, [x, x]);
      else if (x < row[0]) row[0] = x;
      else if (x > row[1]) row[1] = x;
      for (let ny = Math.max(y - 1, 0); ny <= Math.min(y + 1, height - 1); ny++) {
        for (let nx = Math.max(x - 1, 0); nx <= Math.min(x + 1, width - 1); nx++) {
          const next = ny * width + nx;
          if (seen[next] || map[next] <= threshold) continue;
          seen[next] = 1;
          stack.push(next);
        }
      }
    }
    found.push(
      [...rows].flatMap(([y, [a, b]]) => [
        [a, y],
        [b + 1, y],
        [a, y + 1],
        [b + 1, y + 1],
      ]),
    );
  }
  return found;
}

/** Mean of the map inside a rectangle. */
function meanInside(map, width, height, box) {
  const points = corners(box);
  const xs = points.map((p) => p[0]);
  const ys = points.map((p) => p[1]);
  const cos = Math.cos(box.angle);
  const sin = Math.sin(box.angle);
  let sum = 0;
  let count = 0;
  for (let y = Math.max(0, Math.floor(Math.min(...ys))); y < Math.min(height, Math.max(...ys)); y++) {
    for (let x = Math.max(0, Math.floor(Math.min(...xs))); x < Math.min(width, Math.max(...xs)); x++) {
      const dx = x + 0.5 - box.x;
      const dy = y + 0.5 - box.y;
      if (Math.abs(dx * cos + dy * sin) > box.width / 2 || Math.abs(dy * cos - dx * sin) > box.height / 2) continue;
      sum += map[y * width + x];
      count++;
    }
  }
  return count ? sum / count : 0;
}

/**
 * Boxes of text in a probability map, in the map's pixels. The network marks the core of each line, so a box grows on
 * every side by area x `unclip` / perimeter.
 */
export function textBoxes(map, width, height, { threshold = 0.3, boxThreshold = 0.6, unclip = 1.6, minimum = 3 } = {}) {
  const boxes = [];
  for (const points of regions(map, width, height, threshold)) {
    const box = smallestRectangle(points);
    if (Math.min(box.width, box.height) < minimum) continue;
    const score = meanInside(map, width, height, box);
    if (score < boxThreshold) continue;
    const grow = (box.width * box.height * unclip) / (2 * (box.width + box.height));
    boxes.push({ ...box, width: box.width + 2 * grow, height: box.height + 2 * grow, score });
  }
  return boxes;
}

/** Reading order: rows from top to bottom, each from left to right. */
export function inReadingOrder(boxes) {
  const rows = [];
  for (const box of [...boxes].sort((a, b) => a.y - b.y)) {
    const row = rows.at(-1);
    if (row && Math.abs(box.y - row[0].y) < Math.min(box.height, row[0].height) / 2) row.push(box);
    else rows.push([box]);
  }
  return rows.flatMap((row) => row.sort((a, b) => a.x - b.x));
}
