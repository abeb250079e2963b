// What a shared library of Linux says of itself (ELF, 64 bits, little-endian).

const machines = { 62: 'x64', 183: 'arm64' };
const text = (data, at) => data.toString('latin1', at, data.indexOf(0, at));
const word = (data, at) => Number(data.readBigUInt64LE(at));

function readSections(data) {
  const [table, size, count] = [word(data, 40), data.readUInt16LE(58), data.readUInt16LE(60)];
  return Array.from({ length: count }, (_, i) => {
    const at = table + i * size;
    return {
      name: data.readUInt32LE(at),
      type: data.readUInt32LE(at + 4),
      flags: word(data, at + 8),
      offset: word(data, at + 24),
      size: word(data, at + 32),
      link: data.readUInt32LE(at + 40),
      info: data.readUInt32LE(at + 44),
    };
  });
}

const types = { program: 1, symbols: 2, dynamic: 6, dynamicSymbols: 11, versionsNeeded: 0x6ffffffe };

function readSymbols(data, section, strings) {
  const symbols = [];
  for (let at = section.offset + 24; at < section.offset + section.size; at += 24) {
    const [name, info, defined] = [data.readUInt32LE(at), data[at + 4], data.readUInt16LE(at + 6) !== 0];
    const [local, weak] = [info >> 4 === 0, info >> 4 === 2];
    if (name !== 0 && !local) symbols.push({ name: text(data, strings.offset + name), defined, weak });
  }
  return symbols;
}

/** The versions of libraries that symbols need, e.g. 'GLIBC_2.17'. */
function readVersions(data, section, strings) {
  const versions = [];
  let at = section.offset;
  for (let file = 0; file < section.info; ++file) {
    let entry = at + data.readUInt32LE(at + 8);
    for (let i = 0; i < data.readUInt16LE(at + 2); ++i) {
      versions.push(text(data, strings.offset + data.readUInt32LE(entry + 8)));
      entry += data.readUInt32LE(entry + 12);
    }
    at += data.readUInt32LE(at + 12);
  }
  return versions;
}

function expectElf(data) {
  if (data.readUInt32BE(0) !== 0x7f454c46 || data[4] !== 2 || data[5] !== 1)
    throw new Error('is no ELF file of 64 bits');
}

/**
 * The sections of a file that hold instructions, those of an object file too: one a function where it was compiled so.
 * @param {Buffer} data
 * @returns {{ name: string, code: Buffer }[]}
 */
export function readCode(data) {
  expectElf(data);
  const sections = readSections(data);
  const names = sections[data.readUInt16LE(62)];
  return sections
    .filter(({ type, flags }) => type === types.program && (flags & 4) !== 0)
    .map(({ name, offset, size }) => ({
      name: text(data, names.offset + name),
      code: data.subarray(offset, offset + size),
    }));
}

/** @param {Buffer} data */
export function readElf(data) {
  expectElf(data);
  const sections = readSections(data);
  const find = (type) => sections.find((section) => section.type === type);
  const dynamic = find(types.dynamic);
  const [table, needed] = [find(types.dynamicSymbols), find(types.versionsNeeded)];
  const strings = sections[table.link];
  const entries = [];
  for (let at = dynamic.offset; at < dynamic.offset + dynamic.size; at += 16)
    entries.push([word(data, at), word(data, at + 8)]);
  const symbols = readSymbols(data, table, strings);
  return {
    system: 'linux',
    cpu: machines[data.readUInt16LE(18)],
    libraries: entries.filter(([tag]) => tag === 1).map(([, at]) => text(data, strings.offset + at)),
    exports: symbols.filter(({ defined }) => defined).map(({ name }) => name),
    imports: symbols.filter(({ defined }) => !defined).map(({ name }) => name),
    optional: symbols.filter(({ defined, weak }) => !defined && weak).map(({ name }) => name),
    versions: needed === undefined ? [] : readVersions(data, needed, strings),
    stripped: find(types.symbols) === undefined,
    // DT_TEXTREL, or PT_GNU_STACK with the right to execute
    writableCode: entries.some(([tag]) => tag === 22) || executableStack(data),
  };
}

function executableStack(data) {
  const [table, size, count] = [word(data, 32), data.readUInt16LE(54), data.readUInt16LE(56)];
  for (let at = table; at < table + size * count; at += size) {
    if (data.readUInt32LE(at) === 0x6474e551) return (data.readUInt32LE(at + 4) & 1) !== 0;
  }
  return true; // without the header, Linux grants it
}
