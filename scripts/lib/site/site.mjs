// The documentation as a site of static HTML: a page for each Markdown file, the README first. It
// works from a folder (file:) as from a server, and asks nothing of the network.
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { at } from '../project.mjs';
import { documentOf, titleOf } from './layout.mjs';
import { renderer } from './markdown.mjs';
import { groupsOf, readPages } from './pages.mjs';

/** What the search looks through: `[text, where it stands, place]`. */
function searchIndex(pages) {
  return pages.flatMap((page) => {
    const title = titleOf(page);
    const sections = page.headings.filter(({ level }) => level > 1);
    return [
      [title, '', page.place],
      ...sections.map(({ text, anchor }) => [text, title, `${page.place}#${anchor}`]),
      ...page.entries.map(({ text, anchor, section }) => [text, `${title}: ${section}`, `${page.place}#${anchor}`]),
    ];
  });
}

/**
 * Writes the site into a folder, whose former content goes.
 * @returns {{ pages: string[] }} the places of the pages
 */
export function writeSite(out) {
  const pages = readPages();
  const held = new Set();
  const render = renderer(pages, (source) => held.add(source));
  const rendered = [...pages.values()].map((page) => ({ ...page, ...render(page) }));
  const { version } = JSON.parse(readFileSync(at('package.json'), 'utf8'));
  const groups = groupsOf(pages.get('README.md').text);

  const write = (place, text) => {
    mkdirSync(dirname(join(out, place)), { recursive: true });
    writeFileSync(join(out, place), text);
  };
  rmSync(out, { recursive: true, force: true });
  for (const page of rendered) write(page.place, documentOf(page, { groups, pages, version }));
  for (const source of held) write(`${source}.txt`, readFileSync(at(source), 'utf8'));
  cpSync(at('scripts', 'lib', 'site', 'assets'), join(out, 'assets'), { recursive: true });
  write('assets/search-index.js', `globalThis.searchIndex = ${JSON.stringify(searchIndex(rendered))};\n`);
  return { pages: rendered.map(({ place }) => place) };
}
