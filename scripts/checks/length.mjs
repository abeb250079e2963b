// Files stay near 400 lines and under 800; what is tracked stays under 1 MB.
import { statSync } from 'node:fs';
import { at } from '../lib/project.mjs';
import { isCpp, isScript, read } from '../lib/source-files.mjs';

const maxLines = 800;
const maxBytes = 1 << 20;

export function check(files) {
  const problems = [];
  for (const path of files) {
    const bytes = statSync(at(path)).size;
    if (bytes > maxBytes) problems.push(`${path}: ${bytes} bytes, at most ${maxBytes} are kept in the repository`);
    if (!isCpp(path) && !isScript(path) && !/(CMakeLists\.txt|\.cmake|\.py)$/.test(path)) continue;
    const lines = read(path).split('\n').length - 1;
    if (lines > maxLines) problems.push(`${path}: ${lines} lines, at most ${maxLines}`);
  }
  return problems;
}
