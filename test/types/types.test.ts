import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

// Each file in cases/ is compiled against the package's own declarations (dist, through package.json's exports). A line that ends in `// error TS1234` has to give exactly that error, every other
// line none.

const cases = fileURLToPath(new URL('cases/', import.meta.url));
const files = readdirSync(cases).map((name) => join(cases, name));
const modules = files.filter((path) => path.endsWith('.mts'));

function expected(path: string): string[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .flatMap((line, i) => {
      const code = /\/\/ error (TS\d+)$/.exec(line)?.[1];
      return code === undefined ? [] : [`${i + 1}: ${code}`];
    });
}

function compile(
  files: readonly string[],
  module: ts.ModuleKind,
  moduleResolution: ts.ModuleResolutionKind,
): (path: string) => string[] {
  const options: ts.CompilerOptions = {
    module,
    moduleResolution,
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2022.d.ts', 'lib.esnext.disposable.d.ts'],
    types: ['node'],
    strict: true,
    noEmit: true,
    skipLibCheck: true,
  };
  const program = ts.createProgram(files, options);
  return (path) =>
    ts.getPreEmitDiagnostics(program, program.getSourceFile(path)).map(({ file, start = 0, code, messageText }) => {
      const line = file ? file.getLineAndCharacterOfPosition(start).line + 1 : 0;
      return line ? `${line}: TS${code}` : ts.flattenDiagnosticMessageText(messageText, '\n');
    });
}

it('the declarations are built', () => {
  expect(existsSync(new URL('../../dist/index.d.ts', import.meta.url)), 'run `npm run build` first').toBe(true);
});

describe.each([
  ['Node’s resolution', files, ts.ModuleKind.Node16, ts.ModuleResolutionKind.Node16],
  ['a bundler’s resolution', modules, ts.ModuleKind.ESNext, ts.ModuleResolutionKind.Bundler],
])('with %s', (_, paths, module, resolution) => {
  const errorsOf = compile(paths, module, resolution);
  it.each(paths.map((path) => path.slice(cases.length)))('%s compiles as it says', (name) => {
    const path = join(cases, name);
    expect(errorsOf(path)).toEqual(expected(path));
  });
});
