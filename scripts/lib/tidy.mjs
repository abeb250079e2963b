// clang-tidy, on what has changed since it had nothing to say.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { clangTool, compilerHeaders } from './clang-tools.mjs';
import { includedFiles } from './included-files.mjs';
import { live } from './live.mjs';
import { at, fingerprint, say } from './project.mjs';
import { isNativeSource, read } from './source-files.mjs';

// Folders whose faults are the most dangerous: what reads files, what owns memory, what meets JavaScript. In all others names
// are checked.
const dangerous = /^src-native\/(base|tensor|onnx|napi)\//;
const onlyNames = '--checks=-*,readability-identifier-naming';

const stamps = () => at('build', 'tidy.json');
const loadStamps = () => (existsSync(stamps()) ? JSON.parse(readFileSync(stamps(), 'utf8')) : {});

function save(passed) {
  mkdirSync(at('build'), { recursive: true });
  writeFileSync(stamps(), JSON.stringify(passed, null, 1));
}

const known = new Map();
/** The files that a check of `path` reads, itself among them. */
function includes(path) {
  if (!known.has(path)) known.set(path, includedFiles(path, read));
  return known.get(path);
}

/** What decides whether a file passes: itself, what it includes, and the checks. */
const printOf = (path, checks) =>
  fingerprint([...includes(path)].sort().concat('.clang-tidy').map((file) => at(file)), checks); // prettier-ignore

/**
 * A copy of a build folder's list of commands without the flags that Clang does not take and without precompiled headers, so
 * that each file has to include what it uses; returns its folder.
 */
function commandsForClang(database) {
  const folder = at('build', 'tidy');
  mkdirSync(folder, { recursive: true });
  const commands = readFileSync(`${database}/compile_commands.json`, 'utf8').replaceAll(
    / -(mtls-dialect=gnu2|fpch-preprocess|Winvalid-pch|include [^ ]+cmake_pch\.hxx)/g,
    '',
  );
  writeFileSync(`${folder}/compile_commands.json`, commands);
  return folder;
}

/**
 * Those of `paths` whose check reads all of what `changed` names: the sources among them, those of the dangerous folders,
 * and one that includes each header which none of these does.
 */
function readersOf(changed, paths) {
  const readers = new Set(paths.filter((path) => changed.has(path) || dangerous.test(path)));
  const read = new Set([...readers].flatMap((path) => [...includes(path)]));
  for (const path of paths) {
    const missing = [...includes(path)].filter((file) => changed.has(file) && !read.has(file));
    if (missing.length === 0) continue;
    readers.add(path);
    for (const file of includes(path)) read.add(file);
  }
  return readers;
}

/**
 * Checks the sources of the engine, each with the flags that `database`, a build folder, compiles it with.
 * @param {string[]} files those of the project
 * @param {{ database: string, all?: boolean, changed?: Set<string> }} options all: every check in every folder; changed:
 *   names in these files alone, outside of the dangerous folders
 * @returns {Promise<number>} how many files have findings
 */
export async function tidy(files, { database, all = false, changed }) {
  const stamped = loadStamps();
  const compiled = new Set(
    JSON.parse(readFileSync(`${database}/compile_commands.json`, 'utf8')).map(({ file }) => file),
  );
  const sources = files.filter((path) => path.endsWith('.cpp') && isNativeSource(path) && compiled.has(at(path)));
  const wanted = changed ? readersOf(changed, sources) : new Set(sources);
  const jobs = [...wanted]
    .map((path) => ({ path, checks: all || dangerous.test(path) ? [] : [onlyNames] }))
    .map((job) => ({ ...job, print: printOf(job.path, job.checks) }));
  const queue = jobs.filter(({ path, print }) => stamped[path] !== print);
  say(`clang-tidy on ${queue.length} of ${jobs.length} files: the others have passed`);
  if (queue.length === 0) return 0;
  const program = await clangTool('clang-tidy');
  // The build's flags are GCC's; what Clang does not know of them is not a finding.
  const args = [
    '--quiet',
    '-p',
    commandsForClang(database),
    '--extra-arg=-Wno-unknown-warning-option',
    ...(await compilerHeaders()),
  ];
  const passed = { ...stamped };
  let failures = 0;
  const worker = async () => {
    for (let job = queue.shift(); job; job = queue.shift()) {
      const { code } = await live(program, [...args, ...job.checks, at(job.path)]);
      if (code !== 0) failures += 1;
      else save(Object.assign(passed, { [job.path]: job.print }));
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
  return failures;
}
