// No path of somebody's machine, no registry host and no mark of a merge in a tracked file: they break elsewhere.
import { dirname } from 'node:path';
import { root } from '../lib/project.mjs';

const homes = ['/home/[\\w.-]+', '/root', '/Users/[\\w.-]+'];

/** Matches a path below somebody's home, or below the folder that the checkout lies in. */
function machinePath(checkout) {
  const folder = dirname(checkout);
  const shared = !folder.startsWith('/') || /^\/((tmp|opt|srv|usr|var)(\/|$)|$)/.test(folder);
  const own = shared ? [] : [folder.replace(/[^\w/-]/g, '\\$&')];
  return new RegExp(`(^|[^A-Za-z0-9_.~$}/-])(${[...homes, ...own].join('|')})/`);
}

const hosts = ['npmjs', 'npmmirror', 'yarnpkg', 'pypi', 'pythonhosted', 'crates', 'golang', 'maven', 'debian'];
const registryHost = new RegExp(
  `\\b(registry|static|repo|repo1|proxy|files|deb|www)?\\.?(${hosts.join('|')})\\.(org|com|io)\\b`,
  'i',
);
const binary = /\.(png|jpe?g|onnx|ort|pb|bin|npz|wav|gz|xz|zip)$/;

export function check(files, read, checkout = root) {
  const problems = [];
  const machine = machinePath(checkout);
  for (const path of files.filter((name) => !binary.test(name))) {
    read(path)
      .split('\n')
      .forEach((line, index) => {
        if (machine.test(line)) problems.push(`${path}:${index + 1}: path of a machine: ${line.trim().slice(0, 100)}`);
        if (/^(<{7}|>{7}) /.test(line)) problems.push(`${path}:${index + 1}: mark of a merge: ${line.slice(0, 100)}`);
        if (registryHost.test(line)) problems.push(`${path}:${index + 1}: registry host: ${line.trim().slice(0, 100)}`);
      });
  }
  return problems;
}
