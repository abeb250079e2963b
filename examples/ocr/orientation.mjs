// Which way up a picture is: what EXIF data says, and pictures turned and mirrored accordingly.

/**
 * Where a point of the upright picture lies in the stored one, for EXIF's orientations 1 to 8. `right` and `bottom` are
 * the last column and row of the stored picture, or its width and height where points are not pixels.
 */
const places = [
  (x, y) => [x, y],
  (x, y, right) => [right - x, y],
  (x, y, right, bottom) => [right - x, bottom - y],
  (x, y, right, bottom) => [x, bottom - y],
  (x, y) => [y, x],
  (x, y, right, bottom) => [y, bottom - x],
  (x, y, right, bottom) => [right - y, bottom - x],
  (x, y, right) => [right - y, x],
];

/** The corner [x, y] of the upright picture, in the stored one. */
export const storedPoint = ([x, y], orientation, { width, height }) => places[orientation - 1](x, y, width, height);

/** The picture as it is upright: turned and mirrored as an EXIF orientation from 1 to 8 says. */
export function upright(picture, orientation) {
  if (orientation === 1) return picture;
  const [width, height] = orientation < 5 ? [picture.width, picture.height] : [picture.height, picture.width];
  const place = places[orientation - 1];
  const data = new Uint8Array(picture.data.length);
  for (let y = 0, to = 0; y < height; y++) {
    for (let x = 0; x < width; x++, to += 3) {
      const [column, row] = place(x, y, picture.width - 1, picture.height - 1);
      const from = (row * picture.width + column) * 3;
      for (let c = 0; c < 3; c++) data[to + c] = picture.data[from + c];
    }
  }
  return { width, height, data };
}

/** The orientation in EXIF data, which is laid out as a TIFF file. */
function orientationInTiff(tiff) {
  const little = tiff.toString('latin1', 0, 2) === 'II';
  const short = (at) => (little ? tiff.readUInt16LE(at) : tiff.readUInt16BE(at));
  const entries = little ? tiff.readUInt32LE(4) : tiff.readUInt32BE(4);
  for (let i = 0; i < short(entries); i++) {
    const entry = entries + 2 + 12 * i;
    if (short(entry) === 0x0112) return short(entry + 8);
  }
  return 1;
}

/** The EXIF data in a JPEG's first segments or a PNG's chunks. */
function exifOf(bytes) {
  if (bytes.readUInt16BE(0) !== 0xffd8) {
    for (let at = 8; at + 12 <= bytes.length; at += 12 + bytes.readUInt32BE(at)) {
      if (bytes.toString('latin1', at + 4, at + 8) === 'eXIf')
        return bytes.subarray(at + 8, at + 8 + bytes.readUInt32BE(at));
    }
    return undefined;
  }
  const startOfScan = 0xffda;
  for (let at = 2; bytes.readUInt16BE(at) !== startOfScan; at += 2 + bytes.readUInt16BE(at + 2)) {
    const exif = bytes.readUInt16BE(at) === 0xffe1 && bytes.toString('latin1', at + 4, at + 10) === 'Exif\0\0';
    if (exif) return bytes.subarray(at + 10, at + 2 + bytes.readUInt16BE(at + 2));
  }
  return undefined;
}

/** The orientation, 1 to 8, that the EXIF data of a JPEG or PNG file names; 1 where it names none or is damaged. */
export function exifOrientation(bytes) {
  try {
    const exif = exifOf(bytes);
    const orientation = exif ? orientationInTiff(exif) : 1;
    return orientation >= 1 && orientation <= 8 ? orientation : 1;
  } catch (error) {
    if (error instanceof RangeError) return 1; // an offset beyond the file
    throw error;
  }
}
