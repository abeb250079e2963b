// Every export of the package, and every member of one, says in docs/api.md what it means: the page has the docstrings of the
// sources (`npm run docs:api`), and test/unit/docs.test.mjs holds it against them.
const page = 'docs/api.md';

/** The members' lines of the page that hold signatures alone, and the headings of exports that say nothing. */
function withoutMeaning(text) {
  const found = [];
  const blocks = text.split(/^### /m).slice(1);
  for (const block of blocks) {
    const [name, ...lines] = block.split(/^## /m)[0].split('\n');
    const first = lines.find((line) => line !== '') ?? '';
    if (/^(`|- |$)/.test(first)) found.push(name);
    for (const line of lines) {
      if (/^- (`[^`]+`(<br>)?)+$/.test(line)) found.push(`${name}: ${line.slice(2)}`);
    }
  }
  return found;
}

export function check(files, read) {
  if (!files.includes(page)) return [];
  return withoutMeaning(read(page)).map(
    (what) => `${page}: no docstring says what this means: ${what} (npm run docs:api writes the page)`,
  );
}
