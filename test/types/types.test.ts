import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { peerFolder } from '../../scripts/lib/peer.mjs';
import { available } from '../fixtures/available.js';

// Each file in cases/ is compiled against the package's own declarations (dist, through package.json's exports). A line
// that ends in `// error TS1234` has to give exactly that error, every other line none.

const cases = fileURLToPath(new URL('cases/', import.meta.url));
const files = readdirSync(cases)
  .filter((name) => !name.includes('.d.'))
  .map((name) => join(cases, name));
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

// One program is compiled as it stands and with the name of the module replaced.
describe.each(['cts', 'mts'])('a program for onnxruntime-node, as .%s,', (extension) => {
  const source = readFileSync(new URL('consumer.ts', import.meta.url), 'utf8');
  const path = join(cases, `consumer.${extension}`); // in the package, whose name it can import
  const errors = (text: string, paths: ts.CompilerOptions['paths']): string[] => {
    const options: ts.CompilerOptions = {
      module: ts.ModuleKind.Node16,
      moduleResolution: ts.ModuleResolutionKind.Node16,
      target: ts.ScriptTarget.ES2022,
      lib: ['lib.es2022.d.ts', 'lib.dom.d.ts', 'lib.esnext.disposable.d.ts'],
      types: ['node'],
      strict: true,
      noEmit: true,
      skipLibCheck: true,
      paths,
    };
    const host = ts.createCompilerHost(options);
    const { getSourceFile, fileExists } = host;
    host.fileExists = (name) => name === path || fileExists.call(host, name);
    host.getSourceFile = (name, version, ...rest) =>
      name === path ? ts.createSourceFile(name, text, version) : getSourceFile.call(host, name, version, ...rest);
    return ts.getPreEmitDiagnostics(ts.createProgram([path], options, host)).map(({ file, start = 0, messageText }) => {
      const line = file === undefined ? 0 : file.getLineAndCharacterOfPosition(start).line + 1;
      return `${line}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
    });
  };

  it('compiles against its types', async (context) => {
    const folder = await available(context, 'onnxruntime-node', peerFolder);
    expect(errors(source, { 'onnxruntime-node': [join(folder, 'dist', 'index.d.ts')] })).toEqual([]);
  });

  it('compiles against ours, with nothing but the name of the module replaced', () => {
    const renamed = source.replaceAll("'onnxruntime-node'", "'infernode'");
    expect(renamed).not.toBe(source);
    expect(errors(renamed, undefined)).toEqual([]);
  });

  it('would be told of a type that is not there', () => {
    const missing = `${source}\nexport type None = ort.NoSuchType;\n`.replaceAll("'onnxruntime-node'", "'infernode'");
    expect(errors(missing, undefined)).toEqual([expect.stringContaining("no exported member 'NoSuchType'")]);
  });
});
