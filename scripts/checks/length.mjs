// Files stay near 400 lines and under 800; what is tracked stays under 1 MB.
import { isCpp, isScript } from '../lib/source-files.mjs';

const maxLines = 800;
const maxBytes = 1 << 20;

export function check(files, read) {
  const problems = [];
  for (const path of files) {
    const bytes = read(path).length;
    if (bytes > maxBytes) problems.push(`${path}: ${bytes} bytes, at most ${maxBytes} are kept in the repository`);
    if (!isCpp(path) && !isScript(path) && !/(CMakeLists\.txt|\.cmake|\.py)$/.test(path)) continue;
    const lines = read(path).split('\n').length - 1;
    if (lines > maxLines) problems.push(`${path}: ${lines} lines, at most ${maxLines}`);
  }
  return problems;
}
