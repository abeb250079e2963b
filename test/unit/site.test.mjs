// The site that `npm run docs:site` writes, as files; site-browser.test.mjs opens it.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { parse } from 'parse5';
import { afterAll, describe, expect, it } from 'vitest';
import { at } from '../../scripts/lib/project.mjs';
import { renderer } from '../../scripts/lib/site/markdown.mjs';
import { groupsOf, readPages, resolveLink } from '../../scripts/lib/site/pages.mjs';
import { writeSite } from '../../scripts/lib/site/site.mjs';

mkdirSync(at('build'), { recursive: true });
const folder = mkdtempSync(at('build', 'site-'));
const { pages } = writeSite(folder);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A page's elements, `{ tag, attrs }`, in their order, and what the parser has against it. */
function elementsOf(place) {
  const errors = [];
  const text = readFileSync(join(folder, place), 'utf8');
  const onParseError = ({ code, startLine }) => errors.push(`${place}:${startLine}: ${code}`);
  const elements = [];
  const visit = (node) => {
    if (node.tagName !== undefined) {
      const attrs = Object.fromEntries(node.attrs.map(({ name, value }) => [name, value]));
      elements.push({ tag: node.tagName, attrs, parent: node.parentNode });
    }
    (node.childNodes ?? []).forEach(visit);
  };
  visit(parse(text, { onParseError, sourceCodeLocationInfo: true }));
  return { elements, errors };
}

const parsed = new Map(pages.map((place) => [place, elementsOf(place)]));
const valuesOf = (place, tag, name) =>
  parsed.get(place).elements.flatMap(({ tag: each, attrs }) => (each === tag && name in attrs ? [attrs[name]] : []));
const idsOf = (place) => parsed.get(place).elements.flatMap(({ attrs }) => (attrs.id === undefined ? [] : [attrs.id]));

/** Whether an address of a page (of the index, where none is named) is a file of the site, with its anchor. */
function leadsSomewhere(address, from = 'index.html') {
  const [path, anchor] = address.split('#');
  const place = path === '' ? from : posix.join(posix.dirname(from), path);
  return existsSync(join(folder, place)) && (anchor === undefined || idsOf(place).includes(decodeURIComponent(anchor)));
}

it('has a page for each Markdown file that users and developers read', () => {
  const sources = readdirSync(at('docs'), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.md'));
  const places = sources.map((name) => `docs/${name.replace(/\.md$/, '.html')}`);
  const others = ['index.html', 'CHANGELOG.html', 'CONTRIBUTING.html', 'bench/README.html'];
  expect(pages.toSorted()).toEqual([...places, ...others].sort());
});

describe.each(pages)('%s', (place) => {
  it('is well-formed, with one title and anchors of its own', () => {
    const { elements, errors } = parsed.get(place);
    expect(errors).toEqual([]);
    expect(elements.filter(({ tag }) => tag === 'h1')).toHaveLength(1);
    const ids = idsOf(place);
    expect(ids.filter((id, i) => ids.indexOf(id) < i)).toEqual([]);
    const known = /^(a|b|body|br|button|code|div|em|footer|h[1-6]|head|header|html|input|li|link|main|meta|nav|ol|p|pre|script|span|strong|t[dhr]|table|tbody|thead|title|ul)$/; // prettier-ignore
    expect(elements.map(({ tag }) => tag).filter((tag) => !known.test(tag))).toEqual([]); // as an `<name>` outside of code
  });

  it('has links that lead to files and anchors', () => {
    const links = valuesOf(place, 'a', 'href').filter((href) => !/^https:/.test(href));
    expect(links.length).toBeGreaterThan(30);
    expect(links.filter((href) => !leadsSomewhere(href, place))).toEqual([]);
  });

  it('has every other page in its navigation, and says where it is', () => {
    const ways = valuesOf(place, 'a', 'href').map((href) => posix.join(posix.dirname(place), href));
    expect(pages.filter((other) => other !== place && !ways.includes(other))).toEqual([]);
    const current = valuesOf(place, 'a', 'aria-current');
    expect(current).toEqual(place === 'index.html' ? [] : ['page']);
  });

  it('asks nothing of the network', () => {
    const needed = [
      ...['script', 'img'].flatMap((tag) => valuesOf(place, tag, 'src')),
      ...valuesOf(place, 'link', 'href'),
    ];
    for (const address of needed) {
      if (address === 'data:,') continue; // no icon
      expect(address).toMatch(/^[\w./-]+$/);
      expect(existsSync(join(folder, dirname(place), address)), address).toBe(true);
    }
  });
});

it('has styles and scripts that name no address', () => {
  for (const name of ['style.css', 'site.js']) {
    expect(readFileSync(join(folder, 'assets', name), 'utf8')).not.toMatch(
      /https?:|url\(|@import|fetch\(|XMLHttpRequest/,
    );
  }
});

describe('the search', () => {
  const text = readFileSync(join(folder, 'assets', 'search-index.js'), 'utf8');
  const entries = JSON.parse(/^globalThis\.searchIndex = (.*);$/m.exec(text)[1]);

  it('leads to anchors', () => {
    expect(entries.length).toBeGreaterThan(600);
    expect(entries.filter(([, , address]) => !leadsSomewhere(address))).toEqual([]);
  });

  it.each([
    ['Using', '', 'docs/using.html'],
    ['OUT_OF_MEMORY', 'Troubleshooting by error code', 'docs/errors.html#out_of_memory'],
    ['warmUp', 'API: InferenceSession', 'docs/api.html#inferencesession.warmUp'],
    ['memoryLimit', 'Options: Of a session', 'docs/options.html#of-a-session.memoryLimit'],
    ['Conv', 'Operators: ai.onnx', 'docs/operators.html#aionnx.Conv'],
  ])('knows %s (%s)', (...entry) => {
    expect(entries).toContainEqual(entry);
  });
});

describe('Markdown', () => {
  const source = { source: 'docs/a.md', place: 'docs/a.html' };
  const others = new Map([['docs/using.md', { place: 'docs/using.html' }], [source.source, source]]); // prettier-ignore
  const htmlOf = (text) => renderer(others, () => {})({ ...source, text }).html;

  it('has code with its colours', () => {
    expect(htmlOf('```js given=x\nconst a = 1;\n```')).toContain('<span class="hljs-keyword">const</span>');
    expect(() => htmlOf('```cobol\nSTOP RUN.\n```')).toThrow(/code in 'cobol'/);
  });

  it("has a page's path in code as a link to it, and an example's", () => {
    expect(htmlOf('as `docs/using.md` says')).toContain('<a href="using.html"><code>docs/using.md</code></a>');
    expect(htmlOf('as `docs/a.md` says')).not.toContain('<a href="a.html">');
    const example = 'examples/service/server.mjs';
    expect(htmlOf(`as \`${example}\` does`)).toContain(`<a href="../${example}.txt"><code>${example}</code></a>`);
  });

  it('has links to other files of the project as links to their text', () => {
    const held = [];
    const hold = (path) => held.push(path);
    expect(resolveLink(others, source, '../package.json', hold)).toBe('../package.json.txt');
    expect(held).toEqual(['package.json']);
    expect(resolveLink(others, source, 'using.md#b', hold)).toBe('using.html#b');
    expect(() => resolveLink(others, source, 'nowhere.md', hold)).toThrow(/docs\/a\.md links to nowhere\.md/);
  });
});

it('groups its navigation as the README does', () => {
  const groups = groupsOf(readPages().get('README.md').text);
  expect(groups.map(({ label }) => label)).toEqual(['To begin', 'To run it as a service', 'With other software', 'To look up', 'To change it']); // prettier-ignore
  expect(groups[3].entries.at(-1)).toEqual({ text: 'benchmarks', source: 'bench/README.md' });
  expect(() => groupsOf('# a page\n')).toThrow(/no section named More/);
});
