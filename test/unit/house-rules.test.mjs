import { describe, expect, it } from 'vitest';
import { check as circles } from '../../scripts/checks/circles.mjs';
import { check as docstrings } from '../../scripts/checks/docstrings.mjs';
import { check as folders } from '../../scripts/checks/folders.mjs';
import { check as functions } from '../../scripts/checks/functions.mjs';
import { check as includes } from '../../scripts/checks/includes.mjs';
import { check as length } from '../../scripts/checks/length.mjs';
import { check as options } from '../../scripts/checks/options.mjs';
import { check as places } from '../../scripts/checks/places.mjs';
import { check as registration } from '../../scripts/checks/registration.mjs';
import { check as standard } from '../../scripts/checks/standard.mjs';
import { includedFiles } from '../../scripts/lib/included-files.mjs';

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

describe('docstrings', () => {
  const page = (...lines) => ({ 'docs/api.md': ['# API', '', '## Types', '', ...lines, ''].join('\n') });

  it('takes exports and members that say what they mean', () => {
    const files = page('### A', '', 'What it is.', '', '- `b: 1`<br>`c: 2`<br>Both.', '', '## More', '', '`d`');
    expect(problems(docstrings, files)).toEqual([]);
  });

  it('names a member of which there are signatures alone', () => {
    const [found, ...others] = problems(
      docstrings,
      page('### A', '', 'It.', '', '- `b: 1`<br>B.', '- `c: 2`<br>`c: 3`'),
    );
    expect(others).toEqual([]);
    expect(found).toContain('A: `c: 2`<br>`c: 3`');
  });

  it.each([['- `b: 1`<br>B.'], ['`type A = 1`'], ['']])('names an export that says nothing: %j', (line) => {
    expect(problems(docstrings, page('### A', '', line))).toHaveLength(1);
  });
});

describe('the detail/ of a family of microkernels', () => {
  const text = '#include "microkernels/conv/detail/columns.h"\n';

  it.each(['src-native/microkernels/conv/a.simd.cpp', 'test/native/microkernels/conv/a.test.cpp'])(
    'is for %s',
    (path) => {
      expect(problems(includes, { [path]: text })).toEqual([]);
    },
  );

  it.each(['src-native/microkernels/gemm/a.cpp', 'src-native/ops/conv/a.cpp', 'bench/microkernels/a.cpp'])(
    'is not for %s',
    (path) => expect(problems(includes, { [path]: text })).toHaveLength(1),
  );
});

describe('a family of microkernels', () => {
  it.each(['conv/conv.h', 'conv/detail/columns.h', 'conv/conv.simd.cpp', 'common/tiles.h'])('may have %s', (path) => {
    expect(problems(includes, { [`src-native/microkernels/${path}`]: '' })).toEqual([]);
  });

  it('has no second public header', () => {
    const [found, ...others] = problems(includes, { 'src-native/microkernels/conv/rows.h': '' });
    expect(others).toEqual([]);
    expect(found).toContain("conv/conv.h is the family's one header");
  });
});

describe('circles', () => {
  it('takes imports in one direction', () => {
    const files = {
      'src/a.ts': "import { b } from './b/b.js';\n",
      'src/b/b.ts': "import { join } from 'node:path';\n",
    };
    expect(problems(circles, files)).toEqual([]);
  });

  it('finds one over several files, of types too', () => {
    const files = {
      'src/a.ts': "import { b } from './b/b.js';\n",
      'src/b/b.ts': "export type {\n  C,\n} from '../c.js';\n",
      'src/c.ts': "import './a.js';\n",
    };
    expect(problems(circles, files)).toEqual(['src/a.ts -> src/b/b.ts -> src/c.ts -> src/a.ts: imports in a circle']);
  });
});

describe('folders', () => {
  const many = (count) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`src/${i}.ts`, '']));

  it('takes thirty sources or so', () => {
    expect(problems(folders, many(32))).toEqual([]);
    expect(problems(folders, many(33))).toEqual(['src: 33 sources, at most 32']);
  });
});

describe('functions', () => {
  const lines = (count) => '  x();\n'.repeat(count);

  it.each([
    ['a.cpp', 'int a(int b)\n    const noexcept {\n', 78, '}\n'],
    ['a.cpp', 'namespace a {\nstruct B {\n', 100, '};\n}\n'],
    ['a.ts', "describe('a', () => {\n", 100, '});\n'],
    ['a.py', 'def a(\n    b,\n):\n    """One.\n\nTwo # three\n"""\n', 74, 'def c():\n    pass\n'],
    ['a.py', "class A:\n  b = '''\n  def c():\n'''\n", 100, ''],
    ['a.cpp', 'void a() { char b = \'{\'; const char* c = "{"; } // {\n#define D {\n', 100, ''],
  ])('passes in %s: %j', (path, head, count, tail) => {
    expect(problems(functions, { [path]: head + lines(count - 2) + tail })).toEqual([]);
  });

  it.each([
    ['a.cpp', 'namespace a {\nint b(int c) {\n', 2],
    ['a.cpp', '\nB::B(int c) : d_(c), e_{c} {\n', 2],
    ['a.cpp', '\nauto b() -> std::vector<int> {\n', 2],
    ['a.ts', '\nexport async function a(b: { c: number }): Promise<void> {\n', 2],
    ['a.mjs', '\nconst a = async ({ b }) => {\n', 2],
    ['a.ts', 'class A {\n  #b(c: string): number {\n', 2],
    ['a.py', 'class A:\n async def b(c, d="# {"):\n', 2, '  x()\n\n# end\nclass B:\n  e = 1\n'],
    ['a.py', '\ndef b(\n):\n', 2, ''],
  ])('finds in %s: %j', (path, head, line, tail = '}\n}\n') => {
    expect(problems(functions, { [path]: `${head}${lines(78)}${tail}` })).toEqual([
      `${path}:${line}: a function of 80 lines, fewer than 80 are wanted`,
    ]);
  });
});

describe('options', () => {
  const schema = {
    session: [{ name: 'level', type: 'integer', default: 0, doc: 'A level.', native: { member: 'level' } }],
    run: [],
    extra: [{ name: 'session.a', type: 'text', doc: 'A.' }],
    providers: { null: { doc: 'Null.', options: [{ name: 'deviceId', type: 'string', ours: true, doc: 'Which.' }] } },
    env: [],
    variables: [{ name: 'A_B', doc: 'B.' }],
  };
  const files = {
    'src/options/schema.json': JSON.stringify(schema),
    'src-native/session/a.cpp': 'is_on(config, "session.a"); // not "session.b"\nstd::getenv("A_B");\n',
    'providers/null/null.cpp': 'find("device_id")',
  };
  const found = async (changed = {}) => {
    const texts = { ...files, ...changed };
    const all = await options(Object.keys(texts), (path) => texts[path]);
    return all.filter((problem) => !problem.includes('run npm run docs:options'));
  };

  it('tells what was not written anew', async () => {
    const all = await options(Object.keys(files), (path) => files[path]);
    expect(all.filter((problem) => problem.includes('run npm run docs:options'))).toHaveLength(3);
  });

  it('compares the schema with what is read', async () => {
    expect(await found()).toEqual([]);
    expect(await found({ 'src-native/session/b.cpp': 'is_on(config, "session.b")' })).toEqual([
      'src-native/session/b.cpp: src/options/schema.json lacks the config entry session.b',
    ]);
    expect(await found({ 'src-native/session/a.cpp': '' })).toEqual([
      'src/options/schema.json: nothing reads the config entry session.a',
      'src/options/schema.json: nothing reads the environment variable A_B',
    ]);
    expect(await found({ 'providers/null/null.cpp': '' })).toEqual([
      'src/options/schema.json: nothing in providers/null/ reads "device_id"',
    ]);
  });
});

describe('what a file includes', () => {
  const files = {
    'src-native/session/session_options.h': '#include <map>\n#include "session/option_fields.h"\n',
    'src-native/session/option_fields.h':
      '#pragma once\n  #include "session/session_options.h"\n#include "made/by/cmake.h"\n',
  };

  it('is found by way of others, once, where it is there', () => {
    const found = includedFiles('src-native/session/session_options.h', (path) => files[path]);
    expect([...found].sort()).toEqual(Object.keys(files).sort());
  });
});

describe('length', () => {
  it('allows 600 lines and no more', () => {
    expect(problems(length, { 'src/a.ts': 'x\n'.repeat(600) })).toEqual([]);
    expect(problems(length, { 'src/a.ts': 'x\n'.repeat(601) })).toEqual(['src/a.ts: 601 lines, at most 600']);
  });

  it('finds a large file of any kind', () => {
    expect(problems(length, { 'test/fixtures/a.onnx': 'x'.repeat((1 << 20) + 1) })).toHaveLength(1);
  });
});

describe('places', () => {
  const home = ['', 'home', 'ada', 'x'].join('/');
  const host = ['registry', 'npmjs', 'org'].join('.');
  const found = (line) => places(['a.json'], () => `\n${line}\n`, '/projects/main');

  it.each([`// see ${home}`, '// see /projects/other/x', `"resolved": "https://${host}/a"`, `${'<'.repeat(7)} HEAD`])(
    'finds %j',
    (line) => {
      expect(found(line)).toHaveLength(1);
    },
  );

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

  it.each([
    ['providers/null/null.cpp', 'std::vector<ProviderFactory>', 'std::vector< ProviderFactory >'],
    ['providers/cuda/lowering/sample.cpp', 'Lowerings', 'cuda::Lowerings'],
    ['src-native/ops/matmul/methods/tiles.cpp', 'ProductMethods', 'ops::ProductMethods'],
  ])('of every kind is looked at: %s', (file, right, wrong) => {
    const written = (type) => ({ [file]: `void register_it(${type}& all) {\n}\n` });
    expect(problems(registration, written(right))).toEqual([]);
    expect(problems(registration, written(wrong))).toHaveLength(1);
  });
});

describe('standard headers', () => {
  it('are included by the file, or by a header of the project that it includes', () => {
    const files = {
      'src-native/graph/a.cpp': '#include <map>\n#include "base/error.h"\nstd::map<int, std::string> a;\n',
      'src-native/base/error.h': '#include <string>\n',
    };
    expect(problems(standard, files)).toEqual([]);
  });

  it('are missed where only the precompiled ones bring them', () => {
    const text = 'std::vector<int> a;  // std::map is not used\nstd::ranges::sort(a);\nconst char* b = "std::set";\n';
    expect(problems(standard, { 'test/native/graph/a.test.cpp': text })).toEqual([
      'test/native/graph/a.test.cpp: <vector> is used and not included',
      'test/native/graph/a.test.cpp: <algorithm> is used and not included',
    ]);
  });

  it('count where a file beside it brings them', () => {
    const files = { 'test/native/onnx/a.test.cpp': '#include "protos.h"\nstd::set<int> a;\n' };
    const read = (path) => files[path] ?? '#include <set>\n';
    expect(standard(Object.keys(files), read)).toEqual([]);
  });
});
