// What the pages do beyond HTML: light or dark, and the search over `searchIndex`, entries of `[text, where it stands, place]`.
'use strict';

const root = document.documentElement;

/** Storage that may be refused, as for pages that are opened from a folder. */
const kept = {
  get: () => {
    try {
      return localStorage.getItem('theme');
    } catch {
      return null;
    }
  },
  set: (theme) => {
    try {
      localStorage.setItem('theme', theme);
    } catch {
      // the choice then holds for this page
    }
  },
};

const isDark = () => (root.style.colorScheme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark'; // prettier-ignore
const setTheme = (theme) => (root.style.colorScheme = theme);
if (kept.get() !== null) setTheme(kept.get()); // before anything is painted

function themeButton(button) {
  const show = () => (button.textContent = isDark() ? 'Light' : 'Dark'); // what a click brings
  button.hidden = false;
  button.addEventListener('click', () => {
    setTheme(isDark() ? 'light' : 'dark');
    kept.set(root.style.colorScheme);
    show();
  });
  show();
}

/** How well an entry fits, 0 not at all: whole names before their beginnings, those before words inside, pages first. */
function fit([text, where], words) {
  const name = text.toLowerCase();
  const all = `${name} ${where.toLowerCase()}`;
  if (!words.every((word) => all.includes(word))) return 0;
  const query = words.join(' ');
  const page = where === '' ? 0.5 : 0;
  if (name === query) return 4 + page;
  if (name.startsWith(query)) return 3 + page;
  return name.includes(query) ? 2 : 1;
}

function entriesFor(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  return globalThis.searchIndex
    .map((entry) => ({ entry, fit: fit(entry, words) }))
    .filter((each) => each.fit > 0)
    .sort((a, b) => b.fit - a.fit || a.entry[0].length - b.entry[0].length)
    .slice(0, 12)
    .map(({ entry }) => entry);
}

function search(box) {
  const field = box.querySelector('input');
  const list = box.querySelector('ol');
  const show = (entries) => {
    list.replaceChildren(
      ...entries.map(([text, where, place]) => {
        const link = document.createElement('a');
        link.href = root.dataset.top + place;
        const from = document.createElement('span');
        from.textContent = where;
        link.append(text, from);
        const item = document.createElement('li');
        item.append(link);
        return item;
      }),
    );
    if (entries.length === 0 && field.value.trim() !== '') list.textContent = 'Nothing is named so.';
    list.hidden = field.value.trim() === '';
  };
  const close = () => {
    field.value = '';
    show([]);
  };
  box.hidden = false;
  field.addEventListener('input', () => show(entriesFor(field.value)));
  list.addEventListener('click', (event) => event.target.closest('a') && close()); // the place may be on this page
  box.addEventListener('keydown', (event) => {
    const stops = [field, ...list.querySelectorAll('a')];
    const at = stops.indexOf(document.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) stops[(at + step + stops.length) % stops.length].focus();
    else if (event.key === 'Enter' && at === 0) list.querySelector('a')?.click();
    else if (event.key === 'Escape') close();
    else return;
    event.preventDefault();
  });
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.target.closest('input')) return;
    field.focus();
    event.preventDefault();
  });
}

document.addEventListener('DOMContentLoaded', () => {
  themeButton(document.querySelector('.theme'));
  search(document.querySelector('.search'));
});
