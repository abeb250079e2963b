import { existsSync } from 'node:fs';

import { InferenceSession } from '../index.js';
import { quantizeDynamic, quantizeStatic, quantizeWeights, type TransformReport } from '../quantization.js';
import { dynamicExtraTable, dynamicTable } from '../tools/dynamic-options.js';
import {
  flagName,
  helpLine,
  helpLines,
  isRepeated,
  optionsOfTexts,
  takesText,
  type Table,
} from '../tools/option-table.js';
import { calibrationExtraTable, staticExtraTable, staticTable } from '../tools/static-options.js';
import { weightsTable } from '../tools/weights-options.js';
import { checkFolder, readCalibrationData } from './calibration-data.js';
import { printable, report, UsageError, type Command, type Values } from './command.js';
import { OutputFile } from './output-file.js';

/** What each function takes besides its own options. */
interface Listeners {
  readonly signal: AbortSignal;
  readonly onProgress: (progress: { done: number; total: number }) => void;
  readonly onCalibration: (progress: { done: number }) => void;
}

type Quantize = (model: string, output: string, options: object, listeners: Listeners, values: Values) => Promise<TransformReport>; // prettier-ignore

/** Options of the command line that are none of the function's. */
interface Further {
  readonly options: Command['options'];
  readonly help: string;
}

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
function progressLine(): { show: (text: string) => void; clear: () => void } {
  const begin = performance.now();
  let shown = false;
  return {
    show(text) {
      if (!process.stderr.isTTY || performance.now() - begin < 1000) return;
      process.stderr.write(`\r\u001b[K${text}`);
      shown = true;
    },
    clear() {
      if (shown) process.stderr.write('\r\u001b[K');
    },
  };
}

function command(
  summary: string,
  example: string,
  table: Table,
  quantize: Quantize,
  further: Further = { options: {}, help: '' },
): Command {
  const ofTable = Object.entries(table).map(([name, option]) => {
    const type = takesText(option) ? ('string' as const) : ('boolean' as const);
    return [flagName(name), isRepeated(option) ? { type, multiple: true } : { type }] as const;
  });
  return {
    summary,
    help:
      helpLine('out FILE', 'where the result goes') +
      further.help +
      helpLines(table) +
      helpLine('json', 'for programs'),
    example,
    options: { ...Object.fromEntries(ofTable), ...further.options, out: { type: 'string' }, json: { type: 'boolean' } },
    async run(path, values) {
      const out = values['out'] as string | undefined;
      if (out === undefined || out === '-') throw new UsageError('--out FILE says where the result goes');
      new OutputFile(out, path); // throws what is wrong with it before anything is done
      const abort = new AbortController();
      const interrupt = (): void => abort.abort();
      process.once('SIGINT', interrupt);
      const line = progressLine();
      try {
        const listeners: Listeners = {
          signal: abort.signal,
          onProgress: ({ done, total }) => line.show(`${done} of ${total} nodes`),
          onCalibration: ({ done }) => line.show(`calibrated on ${done} runs`),
        };
        const done = await quantize(path, out, optionsOfTexts(table, values), listeners, values);
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

/** Options as the functions take them: on the command line the extra options stand among the others. */
function withExtra(given: object, isExtra: (name: string) => boolean): object {
  const entries = Object.entries(given);
  return {
    ...Object.fromEntries(entries.filter(([name]) => !isExtra(name))),
    extraOptions: Object.fromEntries(entries.filter(([name]) => isExtra(name))),
  };
}

const weights: Quantize = (model, output, given, { signal, onProgress }) =>
  quantizeWeights(model, output, { ...given, signal, onProgress });

const dynamic: Quantize = (model, output, given, { signal, onProgress }) =>
  quantizeDynamic(model, output, {
    ...withExtra(given, (name) => Object.hasOwn(dynamicExtraTable, name)),
    signal,
    onProgress,
  });

const staticExtra: Table = { ...staticExtraTable, ...calibrationExtraTable };
const dataOptions: Further = {
  options: { 'calibration-data': { type: 'string' }, 'calibration-cache-path': { type: 'string' } },
  help:
    helpLine('calibration-data FOLDER', 'what to run: .npz files, or folders of NAME.npy or input_0.pb') +
    helpLine('calibration-cache-path FILE', 'ranges: read where it is there, written where it is not'),
};

const ofData: Quantize = async (model, output, given, listeners, values) => {
  const [folder, cache] = [values['calibration-data'], values['calibration-cache-path']] as (string | undefined)[];
  if (folder === undefined && !(cache !== undefined && existsSync(cache))) {
    throw new UsageError('--calibration-data FOLDER says what to run, where there is no cache of ranges');
  }
  if (folder !== undefined) checkFolder(folder);
  const data = folder === undefined ? null : readCalibrationData(folder, await inputsOf(model));
  const options = withExtra(given, (name) => Object.hasOwn(staticExtra, name));
  return quantizeStatic(model, output, data, {
    ...options,
    ...listeners,
    ...(cache === undefined ? {} : { calibrationCachePath: cache }),
  });
};

/** The names of a model's inputs. */
async function inputsOf(model: string): Promise<readonly string[]> {
  const session = await InferenceSession.create(model, { graphOptimizationLevel: 'disabled', logSeverityLevel: 3 });
  const { inputNames } = session;
  await session.release();
  return inputNames;
}

export const quantizeCommands: Readonly<Record<string, Command>> = {
  'quantize dynamic': command(
    'writes the model with 8-bit weights, whose products are computed on codes',
    'infernode quantize dynamic model.onnx --out model_quantized.onnx --per-channel',
    { ...dynamicTable, ...dynamicExtraTable },
    dynamic,
  ),
  'quantize static': command(
    'writes the model with codes for weights and activations, by ranges that runs on data have',
    'infernode quantize static model.onnx --out model_int8.onnx --calibration-data runs --activation-type QUInt8',
    { ...staticTable, ...staticExtra },
    ofData,
    dataOptions,
  ),
  'quantize weights': command(
    'writes the model with weights of 4 or 8 bits',
    'infernode quantize weights model.onnx --out model_q4.onnx --block-size 32 --is-symmetric',
    weightsTable,
    weights,
  ),
};
