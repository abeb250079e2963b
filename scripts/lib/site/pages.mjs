// Which pages the site has, where each stands in it, and how the README groups them.
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { posix, sep } from 'node:path';
import { at } from '../project.mjs';

/** A page's place in the site: `docs/using.md` is `docs/using.html`, the README of the top folder is the index. */
const placeOf = (source) => (source === 'README.md' ? 'index.html' : source.replace(/\.md$/, '.html'));

/** Every page, by its source: `{ source, place, text }`. */
export function readPages() {
  const guides = readdirSync(at('docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name.replaceAll(sep, '/')}`)
    .sort();
  const sources = ['README.md', ...guides, 'bench/README.md', 'CONTRIBUTING.md', 'CHANGELOG.md'];
  return new Map(
    sources.map((source) => [source, { source, place: placeOf(source), text: readFileSync(at(source), 'utf8') }]),
  );
}

/** The way from a page's place to another place of the site. */
export const wayBetween = (from, to) => posix.relative(posix.dirname(from), to);

/**
 * The place in the site of a file of the project: a page, or the text of another file, which the site then holds, by its name
 * and `.txt`; undefined where there is no such file.
 * @param {(source: string) => void} hold called with such another file
 */
export function placeIn(pages, source, hold) {
  if (pages.has(source)) return pages.get(source).place;
  if (!statSync(at(source), { throwIfNoEntry: false })?.isFile()) return undefined;
  hold(source);
  return `${source}.txt`;
}

/** Where a link of a page leads in the site; addresses elsewhere stay as they are. */
export function resolveLink(pages, page, link, hold) {
  if (/^[a-z]+:|^#/.test(link)) return link;
  const [path, anchor] = link.split('#');
  const place = placeIn(pages, posix.join(posix.dirname(page.source), path), hold);
  if (place === undefined) throw new Error(`${page.source} links to ${link}, which is not there`);
  return wayBetween(page.place, place) + (anchor === undefined ? '' : `#${anchor}`);
}

/** The README's section More: each paragraph is a group, `label: [text](page) · [text](page)`. */
export function groupsOf(readme) {
  const [, section] = /^## More\n([^]*?)(?=^#|$(?![^]))/m.exec(readme) ?? [];
  if (section === undefined) throw new Error('README.md has no section named More, which the navigation is made of');
  return section
    .split(/\n{2,}/)
    .map((paragraph) => {
      const links = [...paragraph.matchAll(/\[([^\]]+)\]\(([^)]+)\)|([\w ]+) \(`([^`]+\.md)`\)/g)];
      const entries = links.map(([, text, source, word, path]) => ({
        text: (text ?? word).trim(),
        source: source ?? path,
      }));
      return { label: paragraph.split(':')[0].trim(), entries };
    })
    .filter(({ entries }) => entries.length > 0);
}
