// The options as src/options/schema.json has them.
//
// An option: `name`, `type`, `doc`, and where they apply
//   ours     onnxruntime-common does not declare it, so the package's types do
//   values   of type enum: what may be given
//   max      of type integer: the largest value, 2^32 - 1 without it. The least is 0, which by custom means no limit
//   default  what counts where it is not given
//   errors   what a wrong value throws, where its type does not tell
//   read     "by hand": src/options/ reads it; "never": it is known and ignored; else a generated function reads it
//   native   the member of session::SessionOptions or RunOptions: `member`, `type` (one that
//            session/option_types.h knows), `default`, the number that is `none` and leaves that default, and for an enum
//            the enumerators, in the order of `values`. Without `type` an enum becomes one of C++ by the option's name
//
// What stands outside, and why:
//   - how options with `read: "by hand"` are read (src/options/session-options.ts, run-options.ts). Their values
//     have a structure (executionProviders, freeDimensionOverrides, preferredOutputLocation, extra,
//     externalData), are objects of JavaScript that the C++ layer never sees (signal, onLog, onProgress), or hang
//     on more than themselves: profileFilePrefix on enableProfiling, logSeverityLevel on env.logLevel, timeout
//     and terminate on the run or load that they end. The schema has their types, defaults, errors and docs all
//     the same
//   - options of createBatcher, of Tensor.fromImage, toImage and of warmUp (src/batching/batcher-options.ts,
//     src/image/). Each is for one function of TypeScript, whose file declares, checks and documents them: there
//     is no second layer that a schema would hold to the first
import { readFileSync } from 'node:fs';
import { at } from '../lib/project.mjs';

export const schemaPath = 'src/options/schema.json';

/** Types that one generic function reads, in TypeScript and in C++. */
export const simpleTypes = ['integer', 'boolean', 'string', 'path', 'enum'];

export const loadSchema = (read = (path) => readFileSync(at(path), 'utf8')) => JSON.parse(read(schemaPath));

/** What a wrong value of an option throws. */
export function errorsOf(option) {
  if (option.errors !== undefined) return option.errors;
  if (option.read === 'never') return 'none';
  if (option.type === 'integer') return `TypeError; RangeError outside 0 to ${mostOf(option)}`;
  return option.type === 'path'
    ? "TypeError, also for a path that begins with '~' or has a null character"
    : 'TypeError';
}

/** The largest integer that an option takes, as text. */
export const mostOf = (option) =>
  option.max === 'Number.MAX_SAFE_INTEGER' ? '2^53 - 1' : String(option.max ?? '2^32 - 1');

export const isRead = (option) => option.read === undefined;

export const pascal = (name) => name[0].toUpperCase() + name.slice(1);

/** `text` in lines that begin with `prefix` and are at most 120 columns wide. */
export function wrapped(text, prefix) {
  const lines = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= 120) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(prefix + word);
  }
  return lines;
}
