// Markdown into HTML: headings and the entries of reference pages get anchors, code its colours, links the site's addresses.
import GithubSlugger from 'github-slugger';
import bash from 'highlight.js/lib/languages/bash';
import cpp from 'highlight.js/lib/languages/cpp';
import dockerfile from 'highlight.js/lib/languages/dockerfile';
import javascript from 'highlight.js/lib/languages/javascript';
import json from 'highlight.js/lib/languages/json';
import typescript from 'highlight.js/lib/languages/typescript';
import hljs from 'highlight.js/lib/core';
import markdownIt from 'markdown-it';
import { placeIn, resolveLink, wayBetween } from './pages.mjs';

const languages = { bash, cpp, dockerfile, javascript, json, typescript };
for (const [name, language] of Object.entries(languages)) hljs.registerLanguage(name, language);

/** Pages whose rows or items are looked up by name, and how such an entry begins in HTML. */
const references = {
  'docs/api.md': { opens: 'list_item_open', name: /^(?:(?:static|readonly|get|set|new) )*([\w$]+|\[[\w.]+\])/ },
  'docs/options.md': { opens: 'tr_open', name: /^([\w.]+)/ },
  'docs/operators.md': { opens: 'tr_open', name: /^([\w.]+)/ },
};

const plain = (inline) => inline.children.map(({ type, content }) => (type === 'html_inline' ? ' ' : content)).join('');

function highlighted(text, language) {
  if (!hljs.getLanguage(language))
    throw new Error(`code in '${language}': scripts/lib/site/markdown.mjs does not know it`);
  return hljs.highlight(text, { language }).value;
}

/** Gives headings their anchors, as GitHub names them, and lists them in `env.headings`. */
function headingAnchors({ tokens, env }) {
  const slugger = new GithubSlugger();
  tokens.forEach((token, i) => {
    if (token.type !== 'heading_open') return;
    const text = plain(tokens[i + 1]);
    const anchor = slugger.slug(text);
    token.attrSet('id', anchor);
    env.headings.push({ text, anchor, level: Number(token.tag[1]) });
  });
}

/** Gives the entries of a reference page anchors, `section.name`, and lists them in `env.entries`. */
function entryAnchors({ tokens, env }) {
  const reference = references[env.page.source];
  if (reference === undefined) return;
  const taken = new Set();
  let section;
  let headings = 0;
  tokens.forEach((token, i) => {
    if (token.type === 'heading_open') section = env.headings[headings++];
    if (token.type !== reference.opens || section === undefined) return;
    const first = tokens.slice(i).find(({ type }) => type === 'inline' || type === 'th_open');
    const [, name] = (first?.type === 'inline' && reference.name.exec(plain(first))) || [];
    const anchor = `${section.anchor}.${name}`;
    if (name === undefined || taken.has(anchor)) return;
    taken.add(anchor);
    token.attrSet('id', anchor.replaceAll(/[[\]]/g, ''));
    env.entries.push({ text: name, anchor: anchor.replaceAll(/[[\]]/g, ''), section: section.text });
  });
}

/** Leads links to the site's pages; the path of a page or an example that stands as code becomes a link to it. */
function links(pages, { tokens, env }) {
  const { page, hold } = env;
  for (const { children } of tokens.filter(({ type }) => type === 'inline')) {
    let inLink = false;
    for (const token of children) {
      if (token.type === 'link_open') token.attrSet('href', resolveLink(pages, page, token.attrGet('href'), hold));
      if (token.type === 'link_open' || token.type === 'link_close') inLink = token.type === 'link_open';
      if (token.type !== 'code_inline' || inLink || token.content === page.source) continue;
      const named = pages.has(token.content) || token.content.startsWith('examples/');
      const place = named ? placeIn(pages, token.content, hold) : undefined;
      if (place !== undefined) token.meta = { leadsTo: wayBetween(page.place, place) };
    }
  }
}

/** A renderer of the pages: `render(page)` answers `{ html, headings, entries }`. */
export function renderer(pages, hold) {
  const md = markdownIt({ html: true });
  const { rules } = md.renderer;
  const { escapeHtml } = md.utils;
  md.core.ruler.push('headings', headingAnchors);
  md.core.ruler.push('entries', entryAnchors);
  md.core.ruler.push('links', (state) => links(pages, state));
  rules.heading_close = (tokens, i) => {
    const anchor = tokens[i - 2].attrGet('id');
    return ` <a class="anchor" href="#${anchor}" aria-label="Link to this section">#</a></${tokens[i].tag}>\n`;
  };
  // What may be wider than the window is reached by the keyboard, which then scrolls it.
  rules.fence = (tokens, i) => {
    const { info, content } = tokens[i];
    const [language] = info.split(' ');
    const code = language === '' ? escapeHtml(content) : highlighted(content, language);
    return `<pre tabindex="0"><code>${code}</code></pre>\n`;
  };
  rules.table_open = () => '<div class="table" tabindex="0"><table>\n';
  rules.table_close = () => '</table></div>\n';
  rules.code_inline = (tokens, i, _options, env) => {
    const { content, meta } = tokens[i];
    const signature = env.page.source === 'docs/api.md' && /[(:=]/.test(content);
    const code = `<code>${signature ? highlighted(content, 'typescript') : escapeHtml(content)}</code>`;
    return meta?.leadsTo === undefined ? code : `<a href="${meta.leadsTo}">${code}</a>`;
  };
  return (page) => {
    const env = { page, hold, headings: [], entries: [] };
    const html = md.render(page.text, env);
    return { html, headings: env.headings, entries: env.entries };
  };
}
