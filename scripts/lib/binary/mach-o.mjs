// What a dynamic library of macOS says of itself (Mach-O, 64 bits), and whether its signature holds.
import { createHash } from 'node:crypto';

const machines = { 0x01000007: 'x64', 0x0100000c: 'arm64' };
const commands = { symbols: 0x2, signature: 0x1d, buildVersion: 0x32 };
const loads = [0xc, 0x18, 0x1f, 0x20, 0x23]; // LC_LOAD_DYLIB and its weak, re-exporting, lazy and upward forms, below their flag
const text = (data, at) => data.toString('latin1', at, data.indexOf(0, at));

/** @param {Buffer} data */
export function readMachO(data) {
  if (data.readUInt32LE(0) !== 0xfeedfacf) throw new Error('is no Mach-O file of 64 bits');
  if (data.readUInt32LE(12) !== 6 && data.readUInt32LE(12) !== 8) throw new Error('is no library that can be loaded');
  const found = { libraries: [], exports: [], imports: [], system: 'darwin', cpu: machines[data.readUInt32LE(4)] };
  let at = 32;
  for (let i = 0; i < data.readUInt32LE(16); ++i) {
    const [command, size] = [data.readUInt32LE(at) & 0x7fffffff, data.readUInt32LE(at + 4)];
    if (loads.includes(command)) found.libraries.push(text(data, at + data.readUInt32LE(at + 8)));
    else if (command === commands.buildVersion) found.minimum = `${data.readUInt16LE(at + 14)}.${data[at + 13]}`;
    else if (command === commands.symbols) readSymbols(data, at, found);
    else if (command === commands.signature) found.signature = checkSignature(data, data.readUInt32LE(at + 8));
    at += size;
  }
  return found;
}

function readSymbols(data, command, found) {
  const [table, count, strings] = [8, 12, 16].map((offset) => data.readUInt32LE(command + offset));
  for (let at = table; at < table + count * 16; at += 16) {
    const type = data[at + 4];
    const [debugging, external, defined] = [(type & 0xe0) !== 0, (type & 1) !== 0, (type & 0xe) !== 0];
    const hidden = (type & 0x10) !== 0;
    if (debugging || !external || hidden) continue;
    const name = text(data, strings + data.readUInt32LE(at)).replace(/^_/, '');
    (defined ? found.exports : found.imports).push(name);
  }
}

/** Counts the pages of the code directory whose hash is another than that of their bytes. */
function checkSignature(data, offset) {
  for (let i = 0; i < data.readUInt32BE(offset + 8); ++i) {
    const directory = offset + data.readUInt32BE(offset + 12 + i * 8 + 4);
    if (data.readUInt32BE(directory) !== 0xfade0c02) continue;
    const [hashes, pages, end] = [16, 28, 32].map((field) => data.readUInt32BE(directory + field));
    const [length, kind, pageSize] = [data[directory + 36], data[directory + 37], 2 ** data[directory + 39]];
    if (kind !== 2) throw new Error('is signed with hashes other than SHA-256');
    let wrong = 0;
    for (let page = 0; page < pages; ++page) {
      const bytes = data.subarray(page * pageSize, Math.min((page + 1) * pageSize, end));
      const at = directory + hashes + page * length;
      if (
        !createHash('sha256')
          .update(bytes)
          .digest()
          .equals(data.subarray(at, at + length))
      )
        ++wrong;
    }
    return { pages, wrong };
  }
  return undefined;
}
