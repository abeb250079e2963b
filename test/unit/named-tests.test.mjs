// Pages of docs/ that name tests as what shows a thing name tests that there are.
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { at } from '../../scripts/lib/project.mjs';

/** The rows of a page's tables that begin with a number, as their cells. */
const rowsOf = (page) =>
  readFileSync(at('docs', page), 'utf8')
    .split('\n')
    .filter((line) => /^\| \d+ \|/.test(line))
    .map((line) => line.split('|').slice(1, -1).map((cell) => cell.trim())); // prettier-ignore

/** The tests that a cell names, each of which has to be a text of its file. */
function checked(cell) {
  const named = cell === '' ? [] : cell.split('; ');
  for (const text of named) {
    const [, path, name] = /^`([^`]+)` "(.+)"$/.exec(text) ?? expect.fail(`${text} names no test`);
    expect(existsSync(at('test', path)), path).toBe(true);
    const source = readFileSync(at('test', path), 'utf8').replaceAll('\\', '');
    expect(
      ["'", '"', '`'].some((quote) => source.includes(`${quote}${name}${quote}`)),
      `${path} has '${name}'`,
    ).toBe(true);
  }
  return named.length;
}

describe('docs/complaints.md', () => {
  const rows = rowsOf('complaints.md');

  it('has each of the seventy once', () => {
    const numbers = rows.map(([number]) => Number(number)).sort((a, b) => a - b);
    expect(numbers).toEqual(Array.from({ length: 70 }, (_, i) => i + 1));
  });

  it.each(rows)('complaint %s, of %s (%s), has tests or a reason', (...[, , , state, here, tests]) => {
    expect(['solved', 'in part', 'open', 'not ours']).toContain(state);
    const count = checked(tests);
    if (state === 'solved' || state === 'in part') expect(count).toBeGreaterThan(0);
    else expect(here).not.toBe('');
  });
});

describe.each(['install-tests.md', 'peer-tests.md', 'use-tests.md'])('docs/%s', (page) => {
  it.each(rowsOf(page))('entry %s, %s, has tests', (...cells) => {
    expect(checked(cells.at(-1))).toBeGreaterThan(0);
  });
});
