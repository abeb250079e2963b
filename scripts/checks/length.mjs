// Files stay near 300 lines, and have 600 at most; what is tracked stays under 1 MB. What a program wrote may be longer.
import { isCpp, isPython, isScript } from '../lib/source-files.mjs';

const maxLines = 600;
const written = /do not edit/i;
const maxBytes = 1 << 20;

export function check(files, read) {
  const problems = [];
  for (const path of files) {
    const bytes = read(path).length;
    if (bytes > maxBytes) problems.push(`${path}: ${bytes} bytes, at most ${maxBytes} are kept in the repository`);
    if (!isCpp(path) && !isScript(path) && !isPython(path) && !/(CMakeLists\.txt|\.cmake)$/.test(path)) continue;
    if (written.test(read(path).slice(0, 300))) continue;
    const lines = read(path).split('\n').length - 1;
    if (lines > maxLines) problems.push(`${path}: ${lines} lines, at most ${maxLines}`);
  }
  return problems;
}
