import { describe, expect, it } from 'vitest';
import { check as includes } from '../../scripts/checks/includes.mjs';
import { check as length } from '../../scripts/checks/length.mjs';
import { check as places } from '../../scripts/checks/places.mjs';
import { check as registration } from '../../scripts/checks/registration.mjs';

/** Runs a check over files given as { path: text }. */
const problems = (check, files) => check(Object.keys(files), (path) => files[path]);

describe('includes', () => {
  it('takes what stands above in the ladder', () => {
    const files = {
      'src-native/kernel/a.cpp': '#include "kernel/a.h"\n#include "base/error.h"\n#include <vector>\n',
      'providers/null/a.cpp': '#include "providers/null/a.h"\n#include "provider/provider.h"\n',
      'src-native/napi/a.cpp': '#include <napi.h>\n#include "providers/null/a.h"\n#include "session/session.h"\n',
    };
    expect(problems(includes, files)).toEqual([]);
  });

  it('finds an upward include and names its line', () => {
    const found = problems(includes, { 'src-native/tensor/a.h': '#pragma once\n#include "graph/graph.h"\n' });
    expect(found).toEqual([
      'src-native/tensor/a.h:2: tensor/ must not include "graph/graph.h", which stands below it in the ladder',
    ]);
  });

  it.each([
    ['src-native/session/a.cpp', '#include <napi.h>\n', 'only napi/ includes napi.h'],
    ['src-native/session/a.cpp', '#include "providers/null/a.h"\n', 'only napi/ brings providers in'],
    ['src-native/ops/a.h', '#include "../base/error.h"\n', 'not relative'],
    ['src-native/odd/a.h', '', "the folder 'odd' has no place in the ladder"],
    ['providers/null/a.cpp', '#include "runtime/run/executor.h"\n', 'must not include "runtime/run/executor.h"'],
  ])('refuses in %s: %j', (path, text, fragment) => {
    const found = problems(includes, { [path]: text });
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(fragment);
  });
});

describe('length', () => {
  it('allows 800 lines and no more', () => {
    expect(problems(length, { 'src/a.ts': 'x\n'.repeat(800) })).toEqual([]);
    expect(problems(length, { 'src/a.ts': 'x\n'.repeat(801) })).toEqual(['src/a.ts: 801 lines, at most 800']);
  });

  it('finds a large file of any kind', () => {
    expect(problems(length, { 'test/fixtures/a.onnx': 'x'.repeat((1 << 20) + 1) })).toHaveLength(1);
  });
});

describe('places', () => {
  const home = ['', 'home', 'ada', 'x'].join('/');
  const host = ['registry', 'npmjs', 'org'].join('.');
  const found = (line) => places(['a.json'], () => `\n${line}\n`, '/projects/main');

  it.each([`// see ${home}`, '// see /projects/other/x', `"resolved": "https://${host}/a"`])('finds %j', (line) => {
    expect(found(line)).toHaveLength(1);
  });

  const tail = ['', 'home', 'ada', 'a'].join('/');

  it.each([`import x from "..${tail}.js"`, `https://example.org${tail}`, '${root}' + tail, 'test/root/a', '/opt/a/b'])(
    'passes %j',
    (line) => expect(found(line)).toEqual([]),
  );
});

describe('registration', () => {
  const define = (name) => `namespace infernode::ops {\nvoid ${name}(kernel::OpRegistrar& r) {\n}\n}\n`;

  it('finds a registration that CMake does not see', () => {
    expect(problems(registration, { 'src-native/ops/conv/conv.cpp': define('register_conv') })).toEqual([]);
    expect(problems(registration, { 'src-native/ops/conv/conv.cpp': define('ops::register_conv') })).toHaveLength(1);
  });

  it('finds two of one name', () => {
    const files = { 'src-native/ops/a.cpp': define('register_conv'), 'src-native/ops/b.cpp': define('register_conv') };
    expect(problems(registration, files)).toHaveLength(1);
  });

  it('lets machinery register nothing', () => {
    expect(problems(registration, { 'src-native/ops/conv/window.cpp': 'int x;\n' })).toEqual([]);
    expect(problems(registration, { 'src-native/fusions/matcher.cpp': '' })).toEqual([]);
  });
});
