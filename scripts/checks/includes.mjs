// A folder of src-native includes only itself and the folders above it in the ladder; napi.h stands in napi/ alone; a family
// of microkernels has one public header, and what it has in detail/ is included by itself, its tests and its bench alone.
import { isCpp, isNativeSource } from '../lib/source-files.mjs';

const ladder = [
  'base',
  'simd',
  'microkernels',
  'cost',
  'tensor',
  'graph',
  'onnx',
  'kernel',
  'ops',
  'fusions',
  'passes',
  'transform',
  'provider',
  'runtime',
  'session',
  'napi',
  'tools',
];

/** Includes of another family's detail/, in the files of any folder. */
function foreignDetails(files, read) {
  const problems = [];
  for (const path of files.filter(isCpp)) {
    for (const [, included, family] of read(path).matchAll(
      /^[ \t]*#[ \t]*include[ \t]*"(microkernels\/(\w+)\/detail\/[^"]+)"/gm,
    )) {
      if (!path.includes(`microkernels/${family}/`)) problems.push(`${path}: "${included}" is for ${family}/ alone`);
    }
  }
  return problems;
}

/** Public headers of a family other than the one of its name; `common/` holds what families share. */
function secondHeaders(files) {
  return files
    .map((path) => /^src-native\/microkernels\/(\w+)\/(\w+)\.h$/.exec(path))
    .filter((match) => match !== null && match[1] !== 'common' && match[1] !== match[2])
    .map(([path, family]) => `${path}: ${family}/${family}.h is the family's one header: others go into detail/`);
}

export function check(files, read) {
  const problems = [...foreignDetails(files, read), ...secondHeaders(files)];
  for (const path of files.filter(isNativeSource)) {
    const [top, folder] = path.split('/');
    const rank = ladder.indexOf(top === 'providers' ? 'provider' : folder);
    if (rank < 0) {
      problems.push(`${path}: the folder '${folder}' has no place in the ladder`);
      continue;
    }
    read(path)
      .split('\n')
      .forEach((line, index) => {
        const place = `${path}:${index + 1}`;
        const [, quoted] = /^\s*#\s*include\s*"([^"]+)"/.exec(line) ?? [];
        const [, angled] = /^\s*#\s*include\s*<([^>]+)>/.exec(line) ?? [];
        if (quoted?.startsWith('../'))
          problems.push(`${place}: includes are written from src-native, not relative (${quoted})`);
        const included = ladder.indexOf(quoted?.split('/')[0] ?? '');
        if (included > rank)
          problems.push(`${place}: ${folder}/ must not include "${quoted}", which stands below it in the ladder`);
        if (quoted?.startsWith('providers/') && top !== 'providers' && folder !== 'napi') {
          problems.push(`${place}: only napi/ brings providers in (${quoted})`);
        }
        if (/^(napi|node_api|js_native_api)\.h$/.test(angled ?? quoted ?? '') && folder !== 'napi') {
          problems.push(`${place}: only napi/ includes ${angled ?? quoted}`);
        }
      });
  }
  return problems;
}
