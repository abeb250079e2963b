// docs/complaints.md: every complaint is there once, and the tests that it names are, too.
import { existsSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { at } from '../../scripts/lib/project.mjs';

const rows = readFileSync(at('docs', 'complaints.md'), 'utf8')
  .split('\n')
  .filter((line) => /^\| \d+ \|/.test(line))
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .map(([, number, where, complaint, state, here, tests]) => ({ number, where, complaint, state, here, tests }));

it('the page of complaints has each of the seventy once', () => {
  const numbers = rows.map(({ number }) => Number(number)).sort((a, b) => a - b);
  expect(numbers).toEqual(Array.from({ length: 70 }, (_, i) => i + 1));
});

it.each(rows.map((row) => [row.number, row.complaint, row]))(
  'complaint %s (%s) has tests that there are, or a reason',
  (_, __, row) => {
    // prettier-ignore
    expect(['solved', 'in part', 'open', 'not ours']).toContain(row.state);
    const named = row.tests === '' ? [] : row.tests.split('; ').map((text) => /^`([^`]+)` "(.+)"$/.exec(text));
    for (const found of named) {
      expect(found, row.tests).not.toBeNull();
      const [, path, name] = found;
      expect(existsSync(at('test', path)), path).toBe(true);
      const text = readFileSync(at('test', path), 'utf8').replaceAll('\\', '');
      expect(
        ["'", '"', '`'].some((quote) => text.includes(`${quote}${name}${quote}`)),
        `${path} has '${name}'`,
      ).toBe(true);
    }
    if (row.state === 'solved' || row.state === 'in part') expect(named).not.toEqual([]);
    else expect(row.here).not.toBe('');
  },
);
