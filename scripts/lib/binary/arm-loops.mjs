// Whether the loops of arm64 code compute by vectors, read from the instructions (Arm Architecture Reference Manual, C4.1).
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readCode } from './elf.mjs';

/** Floating-point arithmetic on one number: FADD, FMUL, FMADD, FSQRT, and what takes one lane of a vector. */
const scalarForms = [
  [0xff200c00, 0x1e200800], // two sources
  [0xff000000, 0x1f000000], // three sources
  [0xff207c00, 0x1e204000, (word) => [3, 7, 8, 9, 10, 11, 12, 14, 15].includes((word >>> 15) & 0x3f)], // FSQRT, FRINT*
  [0xdf200400, 0x5e200400, (word) => ((word >>> 11) & 0x1f) >= 0x18], // three alike: FABD, FMULX
  [0xdf000400, 0x5f000000, (word) => (word & 0x00800000) !== 0], // FMLA, FMLS, FMUL by an element
];

/** Arithmetic on all lanes, of floating-point numbers or integers; no moves, permutations or logic. */
const vectorForms = [
  [0x9f200400, 0x0e200400, (word) => ((word >>> 11) & 0x1f) !== 3], // three alike, but for AND, ORR, EOR, BSL
  [0x9f200c00, 0x0e200000], // three that differ: SMULL, SMLAL, SADDL
  [0x9f208400, 0x0e008400], // dot products, matrix products of 8 and 16 bits
  [0x9f60c400, 0x0e400400], // three alike, of 16 bits
  [0x9f3e0c00, 0x0e200800, (word) => ((word >>> 12) & 0x1f) >= 0x18], // two: FSQRT, FRINT*, FCVT*
  [0x9f3e0c00, 0x0e300800], // across lanes: ADDV, FMAXV
  [0x9f000400, 0x0f000000], // by an element: FMLA, MLA, SDOT
];

const isOneOf = (forms, word) =>
  forms.some(([mask, bits, more]) => (word & mask) >>> 0 === bits && (more === undefined || more(word)));

/** Where a branch leads, as instructions from itself; undefined for other instructions. */
function branchOffset(word) {
  const signed = (at, bits) => (word << (32 - at - bits)) >> (32 - bits);
  if ((word & 0xff000000) >>> 0 === 0x54000000) return signed(5, 19); // B.cond, BC.cond
  if ((word & 0x7e000000) >>> 0 === 0x34000000) return signed(5, 19); // CBZ, CBNZ
  if ((word & 0x7e000000) >>> 0 === 0x36000000) return signed(5, 14); // TBZ, TBNZ
  if ((word & 0xfc000000) >>> 0 === 0x14000000) return signed(0, 26); // B
  return undefined;
}

/**
 * The innermost loops of a function: what lies between a branch backwards and where it leads, and holds no other such.
 * @param {Buffer} code
 * @returns {{ first: number, length: number, vector: number, scalar: number }[]} in instructions; `vector` and `scalar`
 *   count the arithmetic
 */
export function innermostLoops(code) {
  const words = Array.from({ length: code.length >>> 2 }, (_, i) => code.readUInt32LE(i * 4));
  const loops = [];
  for (const [at, word] of words.entries()) {
    const offset = branchOffset(word);
    if (offset === undefined || offset >= 0 || at + offset < 0) continue;
    const first = at + offset;
    if (loops.some((loop) => loop.first >= first && loop.first + loop.length <= at + 1)) continue;
    const body = words.slice(first, at + 1);
    const count = (forms) => body.filter((one) => isOneOf(forms, one)).length;
    loops.push({ first, length: body.length, vector: count(vectorForms), scalar: count(scalarForms) });
  }
  return loops;
}

/**
 * Of the arithmetic in the loops of each object file below a folder, the share that is done by vectors; files without
 * arithmetic (transposes, walks through trees) are left out.
 * @param {string} folder
 * @returns {{ file: string, share: number }[]}
 */
export function vectorShares(folder) {
  const files = readdirSync(folder, { recursive: true }).filter((file) => file.endsWith('.o'));
  return files.flatMap((file) => {
    const loops = readCode(readFileSync(join(folder, file))).flatMap(({ code }) => innermostLoops(code));
    const [vector, scalar] = ['vector', 'scalar'].map((kind) => loops.reduce((sum, loop) => sum + loop[kind], 0));
    return vector + scalar === 0 ? [] : [{ file: file.replace(/\.o$/, ''), share: vector / (vector + scalar) }];
  });
}
