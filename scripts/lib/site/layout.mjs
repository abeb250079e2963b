// The document around a page: head, search, navigation, contents, end.
import { wayBetween } from './pages.mjs';

const escapes = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const escaped = (text) => text.replaceAll(/[&<>"]/g, (sign) => escapes[sign]);
const capital = (text) => text[0].toUpperCase() + text.slice(1);

/** A page's title: its first heading. */
export const titleOf = ({ headings }) => headings.find(({ level }) => level === 1).text;

function navigation(page, groups, pages) {
  const lines = groups.map(({ label, entries }) => {
    const items = entries.map(({ text, source }) => {
      const here = source === page.source ? ' aria-current="page"' : '';
      return `<li><a href="${wayBetween(page.place, pages.get(source).place)}"${here}>${escaped(capital(text))}</a></li>`;
    });
    return `<h2>${escaped(label)}</h2>\n<ul>\n${items.join('\n')}\n</ul>`;
  });
  return `<nav id="pages" class="pages" aria-label="Pages">\n${lines.join('\n')}\n</nav>`;
}

function contents({ headings }) {
  const sections = headings.filter(({ level }) => level === 2 || level === 3);
  if (sections.length < 2) return '';
  const items = sections.map(
    ({ text, anchor, level }) => `<li class="level-${level}"><a href="#${anchor}">${escaped(text)}</a></li>`,
  );
  return `<nav class="contents" aria-label="On this page">\n<h2>On this page</h2>\n<ul>\n${items.join('\n')}\n</ul>\n</nav>`;
}

/** @param {{ source: string, place: string, html: string, headings: object[] }} page */
export function documentOf(page, { groups, pages, version }) {
  const title = titleOf(page);
  const asset = (name) => wayBetween(page.place, `assets/${name}`);
  return `<!doctype html>
<html lang="en" data-top="${wayBetween(page.place, 'index.html').replace(/index\.html$/, '')}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title === 'infernode' ? title : `${escaped(title)} - infernode`}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${asset('style.css')}">
<script src="${asset('site.js')}"></script>
<script src="${asset('search-index.js')}" defer></script>
</head>
<body>
<header>
<a class="brand" href="${wayBetween(page.place, 'index.html')}">infernode</a>
<a class="menu" href="#pages">Pages</a>
<div class="search" role="search" hidden>
<input type="search" placeholder="Search ( / )" aria-label="Search headings, members and options" autocomplete="off" spellcheck="false">
<ol class="found" hidden></ol>
</div>
<button class="theme" type="button" hidden>Dark</button>
</header>
<div class="columns">
${navigation(page, groups, pages)}
<main>
${page.html}</main>
${contents(page)}
</div>
<footer>infernode ${escaped(version)}, MIT licence. Written from <code>${page.source}</code>.</footer>
</body>
</html>
`;
}
