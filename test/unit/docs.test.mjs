// What the pages of docs/ say of each other and of the sources.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { apiPage } from '../../scripts/lib/api-page.mjs';
import { at, root } from '../../scripts/lib/project.mjs';

const below = readdirSync(at('docs'), { recursive: true }).filter((name) => name.endsWith('.md'));
const pages = ['README.md', 'CONTRIBUTING.md', ...below.map((name) => join('docs', name))];
const textOf = (page) => readFileSync(at(page), 'utf8').replaceAll(/^```[^]*?^```$/gm, '');

/** A heading's place as GitHub names it. */
const anchor = (heading) => heading.toLowerCase().replaceAll(/[^\p{L}\p{N}_ -]/gu, '').replaceAll(' ', '-'); // prettier-ignore
const anchorsOf = (path) => [...readFileSync(path, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading]) => anchor(heading)); // prettier-ignore

it.each(pages)('the links of %s lead to files and headings that are there', (page) => {
  for (const [, link] of textOf(page).matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^https?:/.test(link)) continue;
    const [path, place] = link.split('#');
    const file = path === '' ? at(page) : join(dirname(at(page)), path);
    expect(existsSync(file), `${page}: ${link}`).toBe(true);
    if (place !== undefined) expect(anchorsOf(file), `${page}: ${link}`).toContain(place);
  }
});

it('the commands and variables that pages name are there', () => {
  const folders = ['src', 'src-native', 'providers', 'scripts', 'test', 'bench', 'CMakeLists.txt'];
  const grep = ['grep', '-ohE', '\\bINFERNODE_[A-Z0-9_]+', '--', ...folders, ':!test/unit/docs.test.mjs'];
  const variables = new Set(execFileSync('git', grep, { cwd: root, encoding: 'utf8' }).split('\n'));
  for (const page of [...pages, 'CHANGELOG.md', 'bench/README.md']) {
    const text = readFileSync(at(page), 'utf8');
    for (const [command, name] of text.matchAll(/npm run (?:--silent )?([\w:-]+)/g))
      expect(scripts, `${page}: ${command}`).toHaveProperty([name]);
    for (const [command, path] of text.matchAll(
      /\b(?:node|bash|python3) (?:\.\.\/infernode\/)?((?:[\w.-]+\/)+[\w.-]+)/g,
    ))
      expect(existsSync(at(path)), `${page}: ${command}`).toBe(true);
    for (const [name] of text.matchAll(/\bINFERNODE_[A-Z0-9_]+/g))
      expect(variables.has(name), `${page}: ${name}`).toBe(true);
  }
});

const { scripts } = JSON.parse(readFileSync(at('package.json'), 'utf8'));

it.each(Object.entries(scripts))('npm run %s says by --help how it is used, and does nothing', (_, command) => {
  const [program, ...args] = command.split(' ');
  expect(program).toBe('node');
  const told = execFileSync(process.execPath, [...args, '--help'], { cwd: root, encoding: 'utf8', timeout: 30_000 });
  const [head] = readFileSync(at(args[0]), 'utf8')
    .replace(/^#!.*\n/, '')
    .split(/^(?!\/\/)/m);
  expect(told).toBe(head.replaceAll(/^\/\/ ?/gm, ''));
  expect(told).toMatch(/^usage: /m);
});

it('what pages show as JSON is JSON', () => {
  const shown = pages.flatMap((page) => [...readFileSync(at(page), 'utf8').matchAll(/^```json\n([^]*?)^```$/gm)]);
  expect(shown.length).toBeGreaterThan(1);
  for (const [, text] of shown) expect(JSON.parse(text)).toBeTypeOf('object');
});

it('the native tests that pages name are there', () => {
  /** As doctest has it: of patterns only * and ? are more than themselves, and no letter's case counts. */
  const pattern = (text) =>
    new RegExp(
      `^${text
        .replaceAll(/[\\^$.|+()[\]{}]/g, '\\$&')
        .replaceAll('*', '.*')
        .replaceAll('?', '.')}$`,
      'i',
    );
  const named = pages.flatMap((page) => [
    ...readFileSync(at(page), 'utf8').matchAll(/test_(?:emulated_amx_)?(\w+) (?:-tc|--test-case)=(['"])(.*?)\2/g),
  ]);
  expect(named.length).toBeGreaterThan(10);
  for (const [command, folder, , text] of named) {
    const files = readdirSync(at('test', 'native', folder), { recursive: true }).filter((name) =>
      name.endsWith('.cpp'),
    );
    const sources = files.map((name) => readFileSync(at('test', 'native', folder, name), 'utf8')).join('\n');
    const cases = [...sources.matchAll(/TEST_CASE(?:_TEMPLATE)?\(\s*"((?:[^"\\]|\\.)*)"/g)].map(([, name]) => name);
    expect(
      cases.filter((name) => pattern(text).test(name)),
      command,
    ).not.toEqual([]);
  }
});

it('the fusion that docs/adding-a-fusion.md shows is nearly that of the source', () => {
  const [shown, tested] = [
    ...readFileSync(at('docs', 'adding-a-fusion.md'), 'utf8').matchAll(/^```cpp\n([^]*?)^```$/gm),
  ];
  const linesOf = (text) => text.split('\n').map((line) => line.trim()).filter(Boolean); // prettier-ignore
  const source = readFileSync(at('src-native', 'fusions', 'elementwise', 'sigmoid_mul.cpp'), 'utf8');
  const others = linesOf(shown[1]).filter((line) => !source.includes(line));
  expect(others).toEqual([
    'node.attributes.set("alpha", 1.0f);',
    'registry.describe({"QuickGeluFusion"}, "x * sigmoid(x) becomes `QuickGelu`", "neither float32 nor float16");',
  ]);
  const test = readFileSync(at('test', 'native', 'fusions', 'elementwise', 'sigmoid_mul.test.cpp'), 'utf8');
  expect(linesOf(tested[1]).filter((line) => !test.includes(line))).toEqual([]);
});

it('every page is found from the README', () => {
  const seen = new Set(['README.md']);
  for (const page of seen) {
    for (const [, link] of textOf(page).matchAll(/\]\(([^)#\s]+\.md)[^)]*\)/g)) {
      const file = relative(root, join(dirname(at(page)), link));
      if (existsSync(at(file))) seen.add(file);
    }
  }
  expect(pages.filter((page) => !seen.has(page))).toEqual([]);
});

it('docs/api.md is what `npm run docs:api` writes', () => {
  expect(readFileSync(at('docs', 'api.md'), 'utf8') === apiPage(), 'run `npm run docs:api`').toBe(true);
});

describe('docs/errors.md', () => {
  const [, union] = /export type ErrorCode =([^;]*);/.exec(readFileSync(at('src', 'errors.ts'), 'utf8'));
  const codes = [...union.matchAll(/'(\w+)'/g)].map(([, code]) => code);
  const page = readFileSync(at('docs', 'errors.md'), 'utf8');

  it('explains every code that there is, and no other', () => {
    const explained = [...page.matchAll(/^## (.*)$/gm)].map(([, code]) => code);
    expect(explained.sort()).toEqual([...codes].sort());
    const listed = [...page.matchAll(/^\| \[`(\w+)`\]/gm)].map(([, code]) => code);
    expect(listed.sort()).toEqual([...codes].sort());
  });
});
