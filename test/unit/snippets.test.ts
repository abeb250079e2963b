// The programs in the documentation: those in JavaScript run, all are read by TypeScript.
//
// What stands behind ```js or ```ts: `model=text` (which of the models below is model.onnx), `given=session,feeds` (names that
// the text around the program has explained), `not run: why`. A program that begins with `// name.mjs` is the file of that
// name, which others of its page may start; main.mjs starts them.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { projectRoot } from '../../scripts/lib/engine.mjs';
import { run } from '../../scripts/lib/run.mjs';
import { model, node, type TensorInfo } from '../fixtures/onnx-writer.js';

const start = promisify(execFile); // a blocked process cannot report to vitest

interface Snippet {
  name: string;
  /** Where its files lie: a page's programs lie together, if they use the same model. */
  folder: string;
  file: string;
  language: string;
  given: string;
  text: string;
  notRun: string | undefined;
}

function snippetsOf(page: string): Snippet[] {
  const found = readFileSync(join(projectRoot, page), 'utf8').matchAll(/^```(js|ts)\b(.*)\n([^]*?)^```$/gm);
  return [...found].map(([, language, info, text], i) => {
    const [, model = 'image', given = '', notRun] =
      /^(?: model=(\w+))?(?: given=([\w,]+))?(?: not run: (.+))?$/.exec(info!) ?? expect.fail(`${page}: '${info}'`);
    const own = /^\/\/ (\w+\.mjs)\n/.exec(text!)?.[1];
    const folder = `${basename(page, '.md')}-${model}`;
    const end = language === 'ts' ? 'mts' : given !== '' || /^(?:import|export) /m.test(text!) ? 'mjs' : 'cjs';
    return { name: `${page}, ${i + 1}`, folder, file: own ?? `${i + 1}.${end}`, language: language!, given, text: text!, notRun }; // prettier-ignore
  });
}

const pages = ['README.md', 'CONTRIBUTING.md'].concat(
  readdirSync(join(projectRoot, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name))
    .sort(),
);
const snippets = pages.flatMap(snippetsOf);

const f32 = (name: string, shape: TensorInfo['shape']): TensorInfo => ({ name, type: 'float32', shape });
/** The mean of each channel of a picture. */
const means = (input: string, output: string): Uint8Array =>
  model({
    nodes: [node('GlobalAveragePool', [input], ['means']), node('Flatten', ['means'], [output])],
    inputs: [f32(input, ['N', 3, 224, 224])],
    outputs: [f32(output, ['N', 3])],
  });
const models: Record<string, () => Uint8Array> = {
  image: () => means('input', 'output'),
  scores: () => means('image', 'scores'),
  pixels: () =>
    model({
      nodes: [node('GlobalAveragePool', ['pixels'], ['m']), node('Flatten', ['m'], ['f']), node('MatMul', ['f', 'w'], ['logits'])], // prettier-ignore
      inputs: [f32('pixels', ['batch', 3, 224, 224])],
      outputs: [f32('logits', ['batch', 1000])],
      initializers: [{ name: 'w', type: 'float32', dims: [3, 1000], data: new Float32Array(3000) }],
    }),
  rows: () =>
    model({
      nodes: [node('Softmax', ['x'], ['s']), node('CumSum', ['s', 'axis'], ['c']), node('ReduceMax', ['c'], ['y'])],
      inputs: [f32('x', ['rows', 1000])],
      outputs: [f32('y', [1, 1])],
      initializers: [{ name: 'axis', type: 'int64', dims: [], data: BigInt64Array.of(1n) }],
    }),
  text: () =>
    model({
      nodes: [node('Cast', ['input_ids'], ['logits'], { attributes: { to: 1n } })],
      inputs: [{ name: 'input_ids', type: 'int64', shape: ['batch', 'length'] }],
      outputs: [f32('logits', ['batch', 'length'])],
    }),
};

const given = `
  import { InferenceSession, Tensor } from 'infernode';
  export { InferenceSession, Tensor };
  export const pixels = new Float32Array(3 * 224 * 224).fill(1);
  export const data = pixels;
  export const feeds = { input: new Tensor('float32', pixels, [1, 3, 224, 224]) };
  export const input_ids = new Tensor('int64', [1, 2, 3], [1, 3]);
  export const { signal } = new AbortController();
  export const session = await InferenceSession.create(new URL('given.onnx', import.meta.url));
`;

/** What programs that do not run here import, and what Electron adds to Node.js. */
const foreign = `
  declare module '@huggingface/transformers';
  declare module 'electron';
  declare module 'onnxruntime-node';
  declare module 'sharp';
  declare namespace NodeJS { interface Process { parentPort: any; resourcesPath: string } }
`;

mkdirSync(join(projectRoot, 'build'), { recursive: true });
const root = mkdtempSync(join(projectRoot, 'build', 'snippets-'));
const pathOf = ({ folder, file }: Snippet): string => join(root, folder, file);
beforeAll(async () => {
  mkdirSync(join(root, 'node_modules'));
  symlinkSync(projectRoot, join(root, 'node_modules', 'infernode'), 'junction');
  writeFileSync(join(root, 'foreign.d.ts'), foreign);
  for (const snippet of snippets) {
    const place = join(root, snippet.folder);
    mkdirSync(place, { recursive: true });
    writeFileSync(join(place, 'given.mjs'), given);
    writeFileSync(join(place, 'given.onnx'), models['image']!());
    writeFileSync(join(place, 'model.onnx'), models[snippet.folder.split('-').at(-1)!]!());
    const head = snippet.given === '' ? '' : `import { ${snippet.given} } from './given.mjs';`;
    const end = snippet.file.endsWith('.cjs') ? '' : 'export {};\n'; // or TypeScript takes it for a script
    writeFileSync(pathOf(snippet), head + snippet.text + end);
  }
  const command = join(projectRoot, 'dist', 'infernode.cjs');
  await run(process.execPath, [command, 'types', 'model.onnx'], { cwd: join(root, 'types-pixels') });
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe('a program in the documentation', () => {
  const runs = ({ language, notRun, file }: Snippet): boolean =>
    language === 'js' && notRun === undefined && (/^\d/.test(file) || file === 'main.mjs');

  it.each(snippets.filter(runs).map((snippet) => [snippet.name, snippet] as const))('runs: %s', async (_, snippet) => {
    const { stderr } = await start(process.execPath, [snippet.file], { cwd: join(root, snippet.folder) });
    expect(stderr, snippet.text).toBe('');
  });

  it('is one that TypeScript reads without an error, also where it does not run here', { timeout: 180_000 }, () => {
    const options: ts.CompilerOptions = {
      module: ts.ModuleKind.NodeNext,
      target: ts.ScriptTarget.ES2022,
      lib: ['lib.es2022.d.ts', 'lib.esnext.disposable.d.ts'],
      types: ['node'],
      typeRoots: [join(projectRoot, 'node_modules', '@types')],
      allowJs: true,
      checkJs: true,
      noEmit: true,
      skipLibCheck: true,
    };
    const program = ts.createProgram([join(root, 'foreign.d.ts'), ...snippets.map(pathOf)], options);
    const said = ts.getPreEmitDiagnostics(program).map(({ file, messageText, start }) => {
      const line = file === undefined ? '' : file.text.slice(0, start).split('\n').length;
      return `${file?.fileName.slice(root.length)}:${line}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
    });
    expect(said).toEqual([]);
  });
});
