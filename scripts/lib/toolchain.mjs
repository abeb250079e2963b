// The system's build tools: which are there, and how missing ones are had.
import { spawnSync } from 'node:child_process';
import { must } from './live.mjs';
import { say } from './project.mjs';

const output = (program, args, input) => {
  const result = spawnSync(program, args, { encoding: 'utf8', input });
  return result.status === 0 ? result.stdout + result.stderr : undefined;
};

const compiles = (compiler) =>
  output(
    compiler,
    ['-std=c++20', '-fsyntax-only', '-x', 'c++', '-'],
    '#include <concepts>\n#include <span>\n#include <bit>\nstatic_assert(std::popcount(7u) == 3);\n',
  ) !== undefined;

const cmakeIsNew = () => {
  const version = /version (\d+)\.(\d+)/.exec(output('cmake', ['--version']) ?? '');
  return version !== null && (Number(version[1]) > 3 || Number(version[2]) >= 22);
};

const python = process.platform === 'win32' ? 'python' : 'python3';
const pythonHasPip = () =>
  output(python, ['-m', 'pip', '--version']) !== undefined ||
  output(python, ['-c', 'import venv, ensurepip']) !== undefined;

/** name: what a person calls it; apt, brew, winget: packages that bring it. */
const tools = [
  { name: 'CMake 3.22 or newer', found: cmakeIsNew, apt: ['cmake'], brew: ['cmake'], winget: ['Kitware.CMake'] },
  {
    name: 'a C++20 compiler',
    found: () =>
      process.platform === 'win32' || [process.env.CXX, 'c++', 'g++', 'clang++'].some((name) => name && compiles(name)),
    apt: ['g++'],
    brew: ['llvm'],
    winget: ['Microsoft.VisualStudio.2022.BuildTools'],
  },
  {
    name: 'ninja or make',
    found: () =>
      process.platform === 'win32' || ['ninja', 'make'].some((name) => output(name, ['--version']) !== undefined),
    apt: ['ninja-build'],
    brew: ['ninja'],
    winget: ['Ninja-build.Ninja'],
  },
  {
    name: 'Python 3 with pip',
    found: pythonHasPip,
    apt: ['python3', 'python3-pip', 'python3-venv'],
    brew: ['python'],
    winget: ['Python.Python.3.12'],
  },
];

function installCommand(missing) {
  if (process.platform === 'darwin') return `brew install ${missing.flatMap((tool) => tool.brew).join(' ')}`;
  if (process.platform === 'win32')
    return missing.map((tool) => `winget install ${tool.winget.join(' ')}`).join(' && ');
  return `sudo apt-get install -y ${missing.flatMap((tool) => tool.apt).join(' ')}`;
}

/** Installs packages with apt-get without asking. */
export async function aptInstall(packages) {
  const env = { DEBIAN_FRONTEND: 'noninteractive' };
  const install = ['install', '-y', '-q', '--no-install-recommends', ...packages];
  await must('apt-get', ['update', '-q'], { env });
  await must('apt-get', install, { env });
}

export const mayInstall = () => process.getuid?.() === 0 && output('apt-get', ['--version']) !== undefined;

/**
 * Makes sure that the tools of a source build are there: installs what is missing where the system's packages may be
 * installed without asking (root with apt-get).
 * @throws {Error} naming what is missing and the command that installs it
 */
export async function ensureToolchain() {
  const absent = () => tools.filter((tool) => !tool.found());
  let missing = absent();
  if (missing.length > 0 && mayInstall()) {
    say(`installing ${missing.map((tool) => tool.name).join(', ')}`);
    // Without a network, what is missing is named below.
    await aptInstall(missing.flatMap((tool) => tool.apt)).catch((error) => say(error.message));
    missing = absent();
  }
  if (missing.length > 0) {
    throw new Error(
      `missing ${missing.map((tool) => tool.name).join(', ')}: run  ${installCommand(missing)}  and start again`,
    );
  }
}
