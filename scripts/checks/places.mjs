// No path of somebody's machine and no registry host in a tracked file: both break elsewhere.

const machinePath = /(^|[^A-Za-z0-9_.~$}/-])\/(work|farm|home\/[a-z]|root|Users\/[A-Za-z])\//;
const hosts = ['npmjs', 'npmmirror', 'yarnpkg', 'pypi', 'pythonhosted', 'crates', 'golang', 'maven', 'debian'];
const registryHost = new RegExp(
  `\\b(registry|static|repo|repo1|proxy|files|deb|www)?\\.?(${hosts.join('|')})\\.(org|com|io)\\b`,
  'i',
);
const binary = /\.(png|jpe?g|onnx|ort|pb|bin|npz|wav|gz|xz|zip)$/;

export function check(files, read) {
  const problems = [];
  for (const path of files.filter((name) => !binary.test(name))) {
    read(path)
      .split('\n')
      .forEach((line, index) => {
        if (machinePath.test(line))
          problems.push(`${path}:${index + 1}: path of a machine: ${line.trim().slice(0, 100)}`);
        if (registryHost.test(line)) problems.push(`${path}:${index + 1}: registry host: ${line.trim().slice(0, 100)}`);
      });
  }
  return problems;
}
