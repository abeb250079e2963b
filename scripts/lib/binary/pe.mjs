// What a dynamic library of Windows says of itself (PE32+).

const machines = { 0x8664: 'x64', 0xaa64: 'arm64' };
const text = (data, at) => data.toString('latin1', at, data.indexOf(0, at));

/** @param {Buffer} data */
export function readPe(data) {
  const header = data.readUInt32LE(0x3c);
  if (data.toString('latin1', 0, 2) !== 'MZ' || data.readUInt32BE(header) !== 0x50450000)
    throw new Error('is no PE file');
  const optional = header + 24;
  if (data.readUInt16LE(optional) !== 0x20b) throw new Error('is no PE file of 64 bits');
  const sections = Array.from({ length: data.readUInt16LE(header + 6) }, (_, i) => {
    const at = optional + data.readUInt16LE(header + 20) + i * 40;
    return { size: data.readUInt32LE(at + 8), address: data.readUInt32LE(at + 12), offset: data.readUInt32LE(at + 20) };
  });
  const place = (address) => {
    const section = sections.find((one) => address >= one.address && address < one.address + one.size);
    if (section === undefined) throw new Error(`has no section at address ${address}`);
    return address - section.address + section.offset;
  };
  const directory = (i) => data.readUInt32LE(optional + 112 + i * 8);
  const characteristics = data.readUInt16LE(optional + 70);
  const [libraries, imports] = readImports(data, place, directory(1));
  return {
    system: 'win32',
    cpu: machines[data.readUInt16LE(header + 4)],
    libraries,
    exports: readExports(data, place, directory(0)),
    imports,
    stripped: data.readUInt32LE(header + 12) === 0, // no symbol table
    // without DYNAMIC_BASE and NX_COMPAT
    writableCode: (characteristics & 0x140) !== 0x140,
  };
}

function readExports(data, place, address) {
  if (address === 0) return [];
  const table = place(address);
  const names = place(data.readUInt32LE(table + 32));
  const count = data.readUInt32LE(table + 24);
  return Array.from({ length: count }, (_, i) => text(data, place(data.readUInt32LE(names + i * 4))));
}

function readImports(data, place, address) {
  const [libraries, imports] = [[], []];
  if (address === 0) return [libraries, imports];
  for (let at = place(address); data.readUInt32LE(at + 12) !== 0; at += 20) {
    libraries.push(text(data, place(data.readUInt32LE(at + 12))));
    for (let entry = place(data.readUInt32LE(at) || data.readUInt32LE(at + 16)); ; entry += 8) {
      const value = data.readBigUInt64LE(entry);
      if (value === 0n) break;
      if (value >> 63n === 0n) imports.push(text(data, place(Number(value)) + 2)); // else by number
    }
  }
  return [libraries, imports];
}
