// Which files of the project a C++ file includes, by way of others too.
import { existsSync } from 'node:fs';
import { posix } from 'node:path';
import { at } from './project.mjs';

const roots = ['src-native', 'test/native', '.'];

/** `read`: path -> text. The answer holds the file itself. */
export function includedFiles(path, read) {
  const found = new Set();
  const visit = (file) => {
    if (found.has(file)) return;
    found.add(file);
    for (const [, name] of read(file).matchAll(/^[ \t]*#[ \t]*include[ \t]*"([^"]+)"/gm)) {
      const candidates = [posix.dirname(file), ...roots].map((folder) => posix.join(folder, name));
      const target = candidates.find((candidate) => existsSync(at(candidate)));
      if (target !== undefined) visit(target);
    }
  };
  visit(path);
  return found;
}
