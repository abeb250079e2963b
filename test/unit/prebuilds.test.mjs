// What `npm run verify:prebuilds` reads off binaries of each system, and what keeps a release from being one.
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { innermostLoops } from '../../scripts/lib/binary/arm-loops.mjs';
import { complaintsAbout } from '../../scripts/lib/binary/checks.mjs';
import { readElf } from '../../scripts/lib/binary/elf.mjs';
import { readMachO } from '../../scripts/lib/binary/mach-o.mjs';
import { readPe } from '../../scripts/lib/binary/pe.mjs';
import { chosenPlatforms, platforms } from '../../scripts/lib/platforms.mjs';
import { at } from '../../scripts/lib/project.mjs';
import { billOfMaterials } from '../../scripts/lib/sbom.mjs';
import { obstacles } from '../../scripts/release.mjs';
import { differences } from '../../scripts/verify-prebuilds.mjs';

const entries = ['napi_register_module_v1', 'node_api_module_get_api_version_v1'];
const named = (name) => platforms.find((platform) => platform.name === name);

/** A file in which numbers and texts are put at places: [place, bytes, number] or [place, text]. */
function file(size, ...parts) {
  const data = Buffer.alloc(size);
  for (const [place, ...what] of parts) {
    if (typeof what[0] === 'string') data.write(`${what[0]}\0`, place, 'latin1');
    else if (what[0] === 8) data.writeBigUInt64LE(BigInt(what[1]), place);
    else data.writeUIntLE(what[1], place, what[0]);
  }
  return data;
}

/** A library of Windows whose addresses are its places, with two exports and one import. */
const windows = ({ cpu = 0x8664, library = 'KERNEL32.dll' } = {}) =>
  file(
    0x400,
    [0, 'MZ'],
    [0x3c, 4, 0x40],
    [0x40, 'PE'],
    [0x44, 2, cpu],
    [0x46, 2, 1], // sections
    [0x54, 2, 0xf0], // length of the optional header
    [0x58, 2, 0x20b],
    [0x58 + 70, 2, 0x140],
    [0x58 + 112, 4, 0x200], // exports
    [0x58 + 120, 4, 0x240], // imports
    [0x148 + 8, 4, 0x400],
    [0x200 + 24, 4, 2],
    [0x200 + 32, 4, 0x230],
    [0x230, 4, 0x300],
    [0x234, 4, 0x320],
    [0x240, 4, 0x280],
    [0x240 + 12, 4, 0x360],
    [0x280, 8, 0x380],
    [0x300, entries[0]],
    [0x320, entries[1]],
    [0x360, library],
    [0x382, 'Sleep'],
  );

/** A signed library of macOS with one page, two exports and one import. */
function mac({ imported = '_nanosleep', minimum = 12 } = {}) {
  const symbols = [`_${entries[0]}`, `_${entries[1]}`, imported];
  const data = file(
    0x400,
    [0, 4, 0xfeedfacf],
    [4, 4, 0x0100000c],
    [12, 4, 6],
    [16, 4, 4], // commands
    [32, 4, 0xc],
    [36, 4, 56],
    [40, 4, 24],
    [56, '/usr/lib/libSystem.B.dylib'],
    [88, 4, 0x32],
    [92, 4, 24],
    [88 + 12, 4, minimum << 16],
    [112, 4, 2],
    [116, 4, 24],
    [120, 4, 0x180],
    [124, 4, symbols.length],
    [128, 4, 0x200],
    [136, 4, 0x1d],
    [140, 4, 16],
    [144, 4, 0x300],
    ...symbols.flatMap((name, i) => [
      [0x180 + i * 16, 4, i * 0x30],
      [0x180 + i * 16 + 4, 1, i < 2 ? 0xf : 1],
      [0x200 + i * 0x30, name],
    ]),
  );
  const big = (place, number) => data.writeUInt32BE(number, place);
  big(0x300, 0xfade0cc0);
  big(0x308, 1);
  big(0x310, 20); // the code directory, at 0x314
  big(0x314, 0xfade0c02);
  big(0x314 + 16, 44);
  big(0x314 + 28, 1);
  big(0x314 + 32, 0x300);
  data.set([32, 2, 0, 12], 0x314 + 36);
  createHash('sha256')
    .update(data.subarray(0, 0x300))
    .digest()
    .copy(data, 0x314 + 44);
  return data;
}

/** Lists of a C library's names as Zig has them, where a test needs none. */
const zig = at('build', 'no-zig');

describe('a library of Windows', () => {
  it('tells what it exports and imports', () => {
    expect(readPe(windows())).toEqual({ system: 'win32', cpu: 'x64', libraries: ['KERNEL32.dll'], exports: entries, imports: ['Sleep'], stripped: true, writableCode: false }); // prettier-ignore
    expect(complaintsAbout(windows(), named('win32-x64'), zig)).toEqual([]);
  });

  it('is refused where it is for another processor, or needs what not every system has', () => {
    expect(complaintsAbout(windows({ cpu: 0xaa64 }), named('win32-x64'), zig)).toEqual(['is for arm64']);
    expect(complaintsAbout(windows({ library: 'node.exe' }), named('win32-x64'), zig)).toEqual(['needs libraries that not every system has: node.exe']); // prettier-ignore
  });
});

describe('a library of macOS', () => {
  it('tells what it exports and imports, and whether its signature holds', () => {
    expect(readMachO(mac())).toEqual({ system: 'darwin', cpu: 'arm64', libraries: ['/usr/lib/libSystem.B.dylib'], exports: entries, imports: ['nanosleep'], minimum: '12.0', signature: { pages: 1, wrong: 0 } }); // prettier-ignore
    const changed = mac();
    changed[0x2f0] ^= 1;
    expect(readMachO(changed).signature).toEqual({ pages: 1, wrong: 1 });
  });
});

describe.runIf(process.platform === 'linux' && ['x64', 'arm64'].includes(process.arch))('a library of Linux', () => {
  const built = () => readFileSync(at('build', 'Release', 'infernode.node'));
  const here = named(`linux-${process.arch}`);

  it('tells what it exports and needs', () => {
    const { cpu, exports, libraries, imports, versions, stripped, writableCode } = readElf(built());
    expect({ cpu, stripped, writableCode }).toEqual({ cpu: process.arch, stripped: true, writableCode: false });
    expect(exports.sort()).toEqual(entries);
    expect(libraries.join()).toMatch(/libc\.so/);
    expect(imports).toContain('napi_create_function');
    if ('glibcVersionRuntime' in process.report.getReport().header) expect(versions.join()).toMatch(/GLIBC_2\.\d/);
  });

  it('that the machine builds for itself, is fit for a package but for its age and size', () => {
    const ofItsMachine = /GLIBC_|more than 12$/; // a newer C library, kernels for GPUs
    expect(complaintsAbout(built(), here, zig).filter((complaint) => !ofItsMachine.test(complaint))).toEqual([]);
  });

  it('is refused where it does not share the C library of the process', () => {
    const text = built().toString('latin1').replaceAll('libc.so.', 'libx.so.');
    expect(complaintsAbout(Buffer.from(text, 'latin1'), here, zig)).toEqual(
      expect.arrayContaining([expect.stringContaining('needs libraries that not every system has: libx.so.'), 'holds a C library of its own']), // prettier-ignore
    );
  });

  it('is refused where a part of the engine was left out', () => {
    const text = built().toString('latin1').replaceAll('napi_create_function', '_ZN9infernode4lostEv');
    expect(complaintsAbout(Buffer.from(text, 'latin1'), here, zig)).toContain(
      'needs C++ names that no library of a package has: _ZN9infernode4lostEv',
    );
  });

  it('is refused where it is damaged or something else', () => {
    expect(complaintsAbout(built().subarray(0, 1000), here, zig)).toEqual(['is cut off']);
    expect(complaintsAbout(windows(), here, zig)).toEqual(['is no ELF file of 64 bits']);
    const other = named(process.arch === 'x64' ? 'linux-arm64' : 'linux-x64');
    expect(complaintsAbout(built(), other, zig)).toContain(`is for ${process.arch}`);
  });
});

describe('loops for arm64', () => {
  /** What is counted in a loop of these instructions: they and a branch back to the first. */
  function counted(...words) {
    const branch = (0x14000000 | (-words.length & 0x03ffffff)) >>> 0;
    const code = Buffer.concat([...words, branch].map((word) => Buffer.from(Uint32Array.of(word).buffer)));
    return innermostLoops(code);
  }
  const [fmlaOfVectors, fmlaByElement, fmulOfHalves, smull, sdot, smmla, bfdot, fsqrtOfVectors] = [0x4e22cc01, 0x4fa21020, 0x6e421c20, 0x0e62c020, 0x4e829420, 0x4e82a420, 0x6e42fc20, 0x6ea1f820]; // prettier-ignore
  const [sdotByElement, usmmla, bfmmla] = [0x4f81e040, 0x4e8bad3f, 0x6e43ec41];
  const [fmadd, fadd, fsqrt, fmulByElement] = [0x1f020401, 0x1e202821, 0x1e21c021, 0x5fa29020];
  const [load, move, and, duplicate, widen, zip, compare] = [0x3cc10400, 0x1e204041, 0x4e221c20, 0x4e040420, 0x2f08a420, 0x4e823820, 0x1e212000]; // prettier-ignore

  it('tell vectors from single numbers, and arithmetic from moves', () => {
    const vectors = [fmlaOfVectors, fmlaByElement, fmulOfHalves, smull, sdot, smmla, bfdot, fsqrtOfVectors, sdotByElement, usmmla, bfmmla]; // prettier-ignore
    for (const word of vectors) expect(counted(word)).toMatchObject([{ vector: 1, scalar: 0 }]);
    for (const word of [fmadd, fadd, fsqrt, fmulByElement])
      expect(counted(word)).toMatchObject([{ vector: 0, scalar: 1 }]);
    expect(counted(load, move, and, duplicate, widen, zip, compare)).toMatchObject([{ vector: 0, scalar: 0 }]);
  });

  it('are the innermost, whatever branch ends them', () => {
    const [whileNotEqual, whileNotZero, whileBit] = [0x54ffffe1, 0xb5ffffe0, 0x361fffe0]; // each one back
    const inner = (word) => [fmadd, word];
    const loops = counted(...inner(whileNotEqual), fadd, ...inner(whileNotZero), ...inner(whileBit));
    expect(loops.map(({ first, length, scalar }) => [first, length, scalar])).toEqual([[0, 2, 1], [3, 2, 1], [5, 2, 1]]); // prettier-ignore
  });
});

it('platforms are chosen by name', () => {
  expect(chosenPlatforms(['--all'])).toBe(platforms);
  expect(chosenPlatforms(['--platform', 'linux-x64', 'win32-x64'])).toEqual([named('linux-x64'), named('win32-x64')]);
  expect(chosenPlatforms(['--platform=linux-x64,darwin-x64'])).toEqual([named('linux-x64'), named('darwin-x64')]);
  expect(() => chosenPlatforms(['--platform', 'plan9-mips'])).toThrow(
    /'plan9-mips' is no platform: take --all, or --platform with linux-x64, /,
  );
});

it('answers differ where they lie apart, are missing, or are no numbers', () => {
  const of = (...values) => ({ answers: { a: values } });
  expect(differences(of(1, -2), of(1.000001, -2))).toEqual([]);
  expect(differences(of(1, -2), of(1.001, -2))).toEqual(['a']);
  expect(differences(of(1, -2), of(1))).toEqual(['a']);
  expect(differences(of(1), of(null))).toEqual(['a']);
  expect(differences(of(1), { answers: {} })).toEqual(['a']);
});

describe('a release', () => {
  it('may be made of this checkout, as far as its versions go', () => {
    expect(obstacles([], zig)).toEqual([]);
  });

  it('is refused where versions differ', () => {
    expect(obstacles([], zig, undefined, { 'package.json': '1.2.3', 'CMakeLists.txt': '1.2.4' })).toEqual([
      'versions differ: 1.2.3 in package.json, 1.2.4 in CMakeLists.txt',
    ]);
  });

  it('is refused where a binary is missing, is of another version, or is not fit', () => {
    const folder = mkdtempSync(join(tmpdir(), 'infernode-release-'));
    try {
      const file = join(folder, 'infernode.node');
      const found = () => obstacles([named('win32-x64')], zig, () => file, { 'CMakeLists.txt': '1.2.3' });
      expect(found()).toEqual(['@infernode/win32-x64 has no binary: run  npm run prebuild -- --platform win32-x64']);
      const write = (library, version) =>
        writeFileSync(file, Buffer.concat([library, Buffer.from(`\0${version}\0`, 'latin1')]));
      write(windows(), '1.2.3');
      expect(found()).toEqual([]);
      write(windows(), '1.2.30');
      expect(found()).toEqual(['@infernode/win32-x64: the binary is not of version 1.2.3']);
      write(windows({ cpu: 0xaa64 }), '1.2.3');
      expect(found()).toEqual(['@infernode/win32-x64: the binary is for arm64']);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

it('the bill of materials names each dependency with its version, licence and hash', () => {
  const { components } = billOfMaterials([{ name: '@infernode/linux-x64', version: '1.2.3', path: '', sha256: 'ab' }]);
  expect(components.map(({ name }) => name)).toEqual(['@infernode/linux-x64', 'node-gyp-build', 'onnxruntime-common', 'protozero', 'node-addon-api', 'node-api-headers', 'pywuffs', 'ziglang']); // prettier-ignore
  expect(components[0].purl).toBe('pkg:npm/%40infernode/linux-x64@1.2.3');
  for (const { name, version, licenses, hashes } of components) {
    expect(version, name).toMatch(/^\d+\.\d+\.\d+/);
    expect(licenses[0].expression ?? licenses[0].license.id, name).toEqual(expect.any(String));
    expect(hashes[0].content, name).toMatch(/^[0-9a-f]+$/);
  }
});
