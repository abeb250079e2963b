// Each file of an operator family or fusion defines exactly the registration that CMake calls for it: register_<stem>.
import { basename } from 'node:path';

const groups = [
  { folder: 'src-native/ops/', registry: 'kernel::OpRegistrar', exempt: /_common\.cpp$/ },
  { folder: 'src-native/fusions/', registry: 'FusionRegistry', exempt: /(_common|\/fusion[^/]*|\/matcher[^/]*)\.cpp$/ },
];

export function check(files, read) {
  const problems = [];
  for (const { folder, registry, exempt } of groups) {
    const sources = files.filter((path) => path.startsWith(folder) && path.endsWith('.cpp'));
    for (const path of sources) {
      const text = read(path);
      const defined = [
        ...text.matchAll(
          /\bvoid\s+(?:ops::|fusions::)?(register_\w+)\s*\(\s*[\w:]*(?:OpRegistrar|FusionRegistry)\s*&\s*\w*\s*\)\s*\{/g,
        ),
      ].map((match) => match[1]);
      const expected = `register_${basename(path).split('.')[0]}`;
      if (exempt.test(path)) {
        if (defined.length > 0)
          problems.push(`${path}: a file of this name is not collected, so ${defined[0]} is never called`);
      } else if (!defined.includes(expected)) {
        problems.push(
          `${path}: must define void ${expected}(${registry}&); a file without registration is named *_common.cpp`,
        );
      }
    }
  }
  return problems;
}
