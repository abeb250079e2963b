// What a binary of a package must be, read from the file alone.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { readElf } from './elf.mjs';
import { readMachO } from './mach-o.mjs';
import { readPe } from './pe.mjs';

const entries = ['napi_register_module_v1', 'node_api_module_get_api_version_v1'];
const mostBytes = 12e6;
const readers = { linux: readElf, win32: readPe, darwin: readMachO };

/** Functions of Node-API, up to the version that the addon asks for. */
function nodeApi() {
  const { v8 } = createRequire(import.meta.url)('node-api-headers').symbols;
  return new Set([...v8.js_native_api_symbols, ...v8.node_api_symbols]);
}

/** Libraries that every system of a platform has. */
const libraries = {
  glibc: /^(lib(c|m|dl|pthread|rt)\.so\.\d|ld-linux-(x86-64|aarch64)\.so\.\d)$/,
  musl: /^libc\.so$/,
  win32: /^(kernel32|ntdll|advapi32|api-ms-win-crt-[a-z]+-l1-1-0|api-ms-win-core-[a-z0-9-]+)\.dll$/i,
  darwin: /^\/usr\/lib\/libSystem\.B\.dylib$/,
};

/** Names that the C library of a target has, by the lists that the linker reads; undefined where versions tell or the linker did. */
function libraryNames(platform, zigFolder) {
  const list = (...path) => readFileSync(join(zigFolder, 'lib', 'libc', ...path), 'utf8');
  if (platform.os === 'darwin')
    return new Set([...list('darwin', 'libSystem.tbd').matchAll(/\b_(\w+)/g)].map(([, name]) => name));
  if (platform.libc === 'musl')
    return new Set(
      [...list('musl', 'libc.S').matchAll(/^(?:\.globl|\.weak|WEAK64|WEAKTIME64) (\w+)/gm)].map(([, name]) => name),
    );
  return undefined;
}

const forbidden = [
  [/^(socket|connect|send|sendto|recv|getaddrinfo|WSAStartup)$/, 'reaches for the network'],
  [/setaffinity|SetThreadAffinityMask/, 'binds threads to processors'],
  [
    /^(napi|node_api)_create_external_?(arraybuffer|buffer)/,
    'hands JavaScript memory of its own, which Electron forbids',
  ],
];

/** Whether a version such as GLIBC_2.17 is younger than 2.28. */
const tooYoung = (version) => {
  const [, major, minor] = /^GLIBC_(\d+)\.(\d+)/.exec(version) ?? [];
  return major === undefined || Number(major) > 2 || Number(minor) > 28;
};

function complaintsOfLinux(file, platform) {
  const young = platform.libc === 'glibc' ? file.versions.filter(tooYoung) : [];
  const complaints = young.map((version) => `needs ${version}, and glibc 2.28 is the oldest that it is for`);
  // Node.js has one already, and two do not share threads and memory.
  if (!file.libraries.some((name) => /^libc\.so/.test(name))) complaints.push('holds a C library of its own');
  return complaints;
}

function complaintsOfMac(file) {
  const complaints = [];
  if (!file.signature || file.signature.pages === 0)
    complaints.push('has no signature, without which Apple silicon refuses it');
  else if (file.signature.wrong > 0)
    complaints.push(`has ${file.signature.wrong} pages that its signature does not fit`);
  if (!(Number.parseFloat(file.minimum) <= 12))
    complaints.push(`needs macOS ${file.minimum}, and 12.0 is the oldest that it is for`);
  return complaints;
}

/**
 * What is wrong with a platform's binary; nothing is right.
 * @param {Buffer} data the file
 * @param {(typeof import('../platforms.mjs').platforms)[number]} platform
 * @param {string} zigFolder where Zig is, whose lists of C libraries' names are read
 * @returns {string[]}
 */
export function complaintsAbout(data, platform, zigFolder) {
  let file;
  try {
    file = readers[platform.os](data);
  } catch (error) {
    return [error instanceof RangeError ? 'is cut off' : error.message];
  }
  const complaints = [];
  const complain = (list, what) => list.length > 0 && complaints.push(`${what}: ${list.slice(0, 8).join(', ')}`);
  if (file.cpu !== platform.cpu) complaints.push(`is for ${file.cpu}`);
  if (data.length > mostBytes)
    complaints.push(`has ${(data.length / 1e6).toFixed(1)} MB, more than ${mostBytes / 1e6}`);
  complain(
    file.exports.filter((name) => !entries.includes(name)),
    'exports more than its entry points',
  );
  complain(
    entries.filter((name) => !file.exports.includes(name)),
    'does not export',
  );
  complain(
    file.libraries.filter((name) => !libraries[platform.libc ?? platform.os].test(name)),
    'needs libraries that not every system has',
  );
  const known = nodeApi();
  complain(
    file.imports.filter((name) => /^(napi|node_api)_/.test(name) && !known.has(name)),
    'needs what Node-API 8 does not have',
  );
  const names = libraryNames(platform, zigFolder);
  const others = file.imports.filter((name) => !known.has(name) && !file.optional?.includes(name));
  if (names !== undefined)
    complain(
      others.filter((name) => !names.has(name)),
      'needs what the C library does not have',
    );
  complain(
    others.filter((name) => name.startsWith('_Z')),
    'needs C++ names that no library of a package has',
  );
  for (const [pattern, what] of forbidden)
    complain(
      file.imports.filter((name) => pattern.test(name)),
      what,
    );
  if (file.stripped === false) complaints.push('is not stripped');
  if (file.writableCode) complaints.push('does not keep code and data apart');
  if (platform.os === 'linux') complaints.push(...complaintsOfLinux(file, platform));
  if (platform.os === 'darwin') complaints.push(...complaintsOfMac(file));
  return complaints;
}
