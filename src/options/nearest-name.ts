/** The option that was meant: the same but for case and underscores, or with words left out, or nearly the same. */
export function nearestOption(key: string, known: readonly string[]): string | undefined {
  const plain = (name: string): string => name.replaceAll('_', '').toLowerCase();
  const text = plain(key);
  const covers = (long: string, short: string): boolean =>
    short.length >= 6 && long.length - short.length <= 10 && long.includes(short);
  return (
    known.find((name) => plain(name) === text) ??
    nearestName(text, known) ??
    known.find((name) => covers(plain(name), text) || (plain(name).length >= 6 && text.endsWith(plain(name))))
  );
}

/** The name closest to `name`, if it is close enough to be what was meant. */
export function nearestName(name: string, names: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.min(3, Math.ceil(name.length / 3) + 1);
  for (const candidate of names) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase(), bestDistance);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** The value of a few that was meant: one that begins so ('warn' for 'warning'), or nearly the same, whatever the case. */
export function nearestValue(value: string, values: readonly string[]): string | undefined {
  const begins = (a: string, b: string): boolean => a.length >= 3 && b.toLowerCase().startsWith(a.toLowerCase());
  return (
    values.find((each) => begins(value, each)) ??
    nearestName(value, values) ??
    values.find((each) => begins(each, value))
  );
}

/** Levenshtein distance with adjacent swaps counted as one; `limit` or more is reported as `limit`. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let cost = Math.min(at(last, j) + 1, at(row, j - 1) + 1, at(last, j - 1) + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        cost = Math.min(cost, at(beforeLast, j - 2) + 1);
      row.push(cost);
    }
    beforeLast = last;
    last = row;
  }
  return Math.min(limit, at(last, b.length));
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Infinity;
}
