// CMake finds registrations by their first line (scripts/cmake/registration.cmake): one that is written otherwise would
// never be called, and neither would one of two of the same name.
const groups = [
  { folder: 'providers/', registry: 'std::vector<ProviderFactory>' },
  { folder: 'providers/cuda/lowering/', registry: 'Lowerings' },
  { folder: 'src-native/ops/', registry: 'kernel::OpRegistrar' },
  { folder: 'src-native/ops/conv/methods/', registry: 'ConvMethods' },
  { folder: 'src-native/ops/matmul/methods/', registry: 'ProductMethods' },
  { folder: 'src-native/fusions/', registry: 'FusionRegistry' },
];

export function check(files, read) {
  const problems = [];
  for (const { folder, registry } of groups) {
    const seen = new Map();
    const type = registry.match(/\w+/g).at(-1);
    const definition = new RegExp(
      `^.*\\bregister_\\w+\\s*\\(\\s*[\\w:<\\s]*${type}[\\s>]*&\\s*\\w*\\s*\\)\\s*\\{`,
      'gm',
    );
    const collected = new RegExp(`^void (register_[a-z0-9_]+)\\(${registry}& [a-z]+\\) \\{`);
    for (const path of files.filter((name) => name.startsWith(folder) && name.endsWith('.cpp'))) {
      for (const [line] of read(path).matchAll(definition)) {
        const name = collected.exec(line)?.[1];
        if (!name) problems.push(`${path}: '${line}' is not called: write void register_<name>(${registry}& r) {`);
        else if (seen.has(name)) problems.push(`${path}: ${name} stands in ${seen.get(name)}, too`);
        else seen.set(name, path);
      }
    }
  }
  return problems;
}
