import { quantizeDynamic, quantizeWeights, type TransformReport } from '../quantization.js';
import { dynamicExtraTable, dynamicTable } from '../tools/dynamic-options.js';
import { flagName, helpLine, helpLines, optionsOfTexts, takesText, type Table } from '../tools/option-table.js';
import { weightsTable } from '../tools/weights-options.js';
import { printable, report, UsageError, type Command } from './command.js';
import { OutputFile } from './output-file.js';

type Quantize = (
  model: string,
  output: string,
  options: { signal: AbortSignal; onProgress: (progress: { done: number; total: number }) => void },
) => Promise<TransformReport>;

const megabytes = (bytes: number): string => `${(bytes / 1e6).toPrecision(3)} MB`;

function textOf({ nodes, files, bytesBefore, bytesAfter }: TransformReport): string {
  const counts = new Map<string, number>();
  for (const { opType, became, reason } of nodes) {
    const what = became === undefined ? `${opType} left: ${reason}` : `${opType} became ${became}`;
    counts.set(what, (counts.get(what) ?? 0) + 1);
  }
  const lines = [...counts].map(([what, count]) => `  ${count} ${printable(what)}\n`).join('');
  return `wrote ${files.join(' and ')}: ${megabytes(bytesBefore)} became ${megabytes(bytesAfter)}\n${lines}`;
}

/** A line on a terminal that says how far the work is, once it has taken a second. */
function progressLine(): { show: (progress: { done: number; total: number }) => void; clear: () => void } {
  const begin = performance.now();
  let shown = false;
  return {
    show({ done, total }) {
      if (!process.stderr.isTTY || performance.now() - begin < 1000) return;
      process.stderr.write(`\r${done} of ${total} nodes`);
      shown = true;
    },
    clear() {
      if (shown) process.stderr.write('\r\u001b[K');
    },
  };
}

function command(summary: string, example: string, table: Table, quantize: Quantize): Command {
  const ofTable = Object.entries(table).map(([name, option]) => {
    const type = takesText(option) ? ('string' as const) : ('boolean' as const);
    return [flagName(name), option.kind === 'names' ? { type, multiple: true } : { type }] as const;
  });
  return {
    summary,
    help: helpLine('out FILE', 'where the result goes') + helpLines(table) + helpLine('json', 'for programs'),
    example,
    options: { ...Object.fromEntries(ofTable), out: { type: 'string' }, json: { type: 'boolean' } },
    async run(path, values) {
      const out = values['out'] as string | undefined;
      if (out === undefined || out === '-') throw new UsageError('--out FILE says where the result goes');
      new OutputFile(out, path); // throws what is wrong with it before anything is done
      const abort = new AbortController();
      const interrupt = (): void => abort.abort();
      process.once('SIGINT', interrupt);
      const line = progressLine();
      try {
        const done = await quantize(path, out, {
          ...optionsOfTexts(table, values),
          signal: abort.signal,
          onProgress: line.show,
        });
        line.clear();
        report(values, done, textOf(done));
      } catch (error) {
        line.clear();
        if (abort.signal.aborted) throw new Error('interrupted: nothing was written');
        throw error instanceof TypeError ? new UsageError(error.message) : error;
      } finally {
        process.removeListener('SIGINT', interrupt);
      }
    },
  };
}

/** On the command line the extra options stand among the others. */
const dynamic: Quantize = (model, output, given) => {
  const isExtra = ([name]: readonly [string, unknown]): boolean => Object.hasOwn(dynamicExtraTable, name);
  const entries = Object.entries(given);
  return quantizeDynamic(model, output, {
    ...Object.fromEntries(entries.filter((entry) => !isExtra(entry))),
    extraOptions: Object.fromEntries(entries.filter(isExtra)),
  });
};

export const quantizeCommands: Readonly<Record<string, Command>> = {
  'quantize dynamic': command(
    'writes the model with 8-bit weights, whose products are computed on codes',
    'infernode quantize dynamic model.onnx --out model_quantized.onnx --per-channel',
    { ...dynamicTable, ...dynamicExtraTable },
    dynamic,
  ),
  'quantize weights': command(
    'writes the model with weights of 4 or 8 bits',
    'infernode quantize weights model.onnx --out model_q4.onnx --block-size 32 --is-symmetric',
    weightsTable,
    quantizeWeights,
  ),
};
