import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { costMarkdown, costText, goalText, holds } from '../../bench/models/cost-report.mjs';
import { accuracyTests, costs } from '../../bench/models/costs.mjs';
import { encodeFrame, readFrames } from '../../bench/models/frames.mjs';
import { machineWords, parseRates } from '../../bench/models/machine.mjs';
import { commandLine, parseOptions, tableName } from '../../bench/models/options.mjs';
import { markdown, problem, replaceTable, rowText, streaming, summarize } from '../../bench/models/report.mjs';
import { boundByReading, weightBytes } from '../../bench/models/weights.mjs';
import { workloads } from '../../bench/architectures/workloads.mjs';

describe('the options of the benchmark', () => {
  it('compare everything with onnxruntime-node, with one thread and with two, unless told otherwise', () => {
    expect(parseOptions([])).toMatchObject({
      peer: 'ort',
      threads: [1, 2],
      sets: ['architectures', 'real', 'trees'],
      rounds: 7,
      seconds: 0.5,
      readme: false,
    });
  });

  it('are read in the forms they are used in', () => {
    const given =
      '--peer openvino --threads 4,1,4 --only ^gpt2 --set real --level basic --cpu avx2 --precision medium --rounds 3 --seconds 0.1 --readme';
    expect(parseOptions(given.split(' '))).toEqual({
      peer: 'openvino',
      threads: [4, 1],
      only: /^gpt2/,
      sets: ['real'],
      level: 'basic',
      cpu: 'avx2',
      precision: 'medium',
      rounds: 3,
      seconds: 0.1,
      seed: 1,
      count: 40,
      json: undefined,
      readme: true,
    });
  });

  it.each([
    [['--json'], '-'],
    [['--json', '--readme'], '-'],
    [['--json', 'out.json', '--readme'], 'out.json'],
    [['--json=out.json'], 'out.json'],
    [[], undefined],
  ])('take a file for JSON or none: %j', (args, json) => expect(parseOptions(args).json).toBe(json));

  it.each([
    ['--peer tvm', '--peer tvm: use ort, openvino or none'],
    ['--set small', '--set small: use architectures, real, trees, costs, random or all'],
    ['--level high', '--level high: use disabled, basic, extended, layout or all'],
    ['--cpu sse', '--cpu sse: use baseline, avx2, avx512, vnni, bf16, amx, neon, dotprod or i8mm'],
    ['--precision low', '--precision low: use highest, high or medium'],
    ['--threads 0', '--threads 0: use counts of threads, such as 1,2'],
    ['--threads 1,', '--threads 1,: use counts of threads, such as 1,2'],
    ['--threads two', '--threads two: use counts of threads, such as 1,2'],
    ['--rounds 1.5', '--rounds 1.5: use a number of rounds from 1'],
    ['--seconds 0', '--seconds 0: use seconds above 0'],
    ['--seconds NaN', '--seconds NaN: use seconds above 0'],
    ['--only (', '--only (: Invalid regular expression: /(/: Unterminated group'],
    ['--json=', '--json=: name a file, or give --json alone'],
    ['--readme --peer none', '--readme needs a peer to compare with'],
    ['--seed 3', '--seed is for --set random'],
    ['--set random --seed=-1', '--seed -1: use a whole number from 0'],
    ['--set random --count 0', '--count 0: use a number of networks from 1'],
    ['--set costs --threads 1', '--threads is not for --set costs'],
    ['--set costs --cpu=avx2', '--cpu is not for --set costs'],
    ['--set costs --peer openvino', '--peer openvino is not for --set costs: use ort or none'],
    ['--thread 1', "Unknown option '--thread'; --help says what there is"],
    ['gpt2', "Unexpected argument 'gpt2'; --help says what there is"],
    ['--peer', "Option '--peer <value>' argument missing; --help says what there is"],
    ['--peer --readme', "Option '--peer' argument is ambiguous; --help says what there is"],
  ])('are refused in one line: %s', (args, message) =>
    expect(() => parseOptions(args.split(' '))).toThrow(new Error(message)),
  );

  it('name the table that their results belong in', () => {
    expect(tableName(parseOptions([]))).toBe('ort');
    expect(tableName(parseOptions(['--peer', 'openvino', '--precision', 'medium']))).toBe('openvino medium');
    expect(tableName(parseOptions(['--level', 'basic', '--cpu', 'avx2']))).toBe('ort level basic cpu avx2');
    expect(tableName(parseOptions(['--set', 'costs']))).toBe('costs');
  });

  it('are said again without the file of JSON, and as a shell takes them', () => {
    expect(
      commandLine(['--json', 'results/out.json', '--only', "a|b'c", '--threads', '1,2', '--json=x', '--json']),
    ).toBe(`npm run bench -- --only 'a|b'\\''c' --threads 1,2`);
    expect(commandLine([])).toBe('npm run bench --');
  });
});

describe('the words for the machine', () => {
  const cpuinfo = `processor\t: 0
model name\t: Some(R)  Processor @ 2.10GHz
flags\t\t: fpu sse2 avx2 avx512f avx512_vnni amx_tile hypervisor

processor\t: 1
`;

  it('are those of /proc/cpuinfo', () => {
    expect(machineWords({ cpuinfo, model: 'other', cores: 2, bytes: 16.6e9 })).toBe(
      'Some(R) Processor @ 2.10GHz, 2 cores of a virtual machine, AVX2, AVX-512, VNNI, AMX, 17 GB of memory',
    );
  });

  it('do without where there is none', () => {
    expect(machineWords({ cpuinfo: '', model: 'Apple M1', cores: 1, bytes: 8e9 })).toBe(
      'Apple M1, 1 core, 8 GB of memory',
    );
  });

  it('know the features of Arm', () => {
    const words = machineWords({ cpuinfo: 'Features\t: fp asimd asimddp\n', model: 'Arm', cores: 4, bytes: 4e9 });
    expect(words).toBe('Arm, 4 cores, NEON, dot products, 4 GB of memory');
  });
});

const rows = [
  { name: 'resnet50', set: 'architectures', threads: 1, ours: 20, theirs: 40, ratio: 2, lowest: 1.9, highest: 2.1 },
  { name: 'resnet50', set: 'architectures', threads: 2, wrong: '3.0e-2 in logits' },
  {
    ...{ name: 'gpt2-decode-255', set: 'architectures', threads: 1, weights: 500e6 },
    ...{ ours: 50, theirs: 100, ratio: 8, lowest: 7, highest: 9 },
  },
  {
    name: 'gpt2-decode-255',
    set: 'architectures',
    threads: 2,
    weights: 500e6,
    ours: 40,
    peerFailed: 'no such operator',
  },
  { name: 'silero-v5', set: 'real', threads: 1, failed: 'cannot\nload' },
  { name: 'silero-v5', set: 'real', threads: 2, ours: 0.5, theirs: 0.75, ratio: 1.5, lowest: 1, highest: 2 },
];

describe('the report', () => {
  it('has a line for each row', () => {
    expect(rows.map((row) => rowText(row).replace(/ +/g, ' '))).toEqual([
      'resnet50 1T 20.00 40.00 2.00 (1.90 to 2.10)',
      'resnet50 2T wrong answer: relative error 3.0e-2 in logits',
      'gpt2-decode-255 1T 50.00 100.0 8.00 (7.00 to 9.00)',
      'gpt2-decode-255 2T 40.00 the peer failed: no such operator',
      'silero-v5 1T failed: cannot',
      'silero-v5 2T 0.500 0.750 1.50 (1.00 to 2.00)',
    ]);
    expect(rows.map((row) => Boolean(problem(row)))).toEqual([false, true, false, true, true, false]);
  });

  it.each([
    ['TypeError [CODE]: no such thing', 'TypeError [CODE]: no such thing'],
    ['  [cause]: Error: no binary', 'Error: no binary'],
  ])('finds what was wrong in the trace of a process that ended: %s', (line, said) => {
    const failed = `the infernode process ended with 1: 6) {\n  code: 'IO',\n${line}\n    at a.mjs:1`;
    expect(problem({ failed })).toBe(`failed: ${said}`);
  });

  it('means over the ratios there are, and apart over those bound by arithmetic', () => {
    expect(summarize(rows)).toEqual([
      { set: 'architectures', of: 'bound by arithmetic', threads: 1, workloads: 1, geometricMean: 2 },
      { set: 'architectures', of: 'all', threads: 1, workloads: 2, geometricMean: expect.closeTo(4, 10) },
      { set: 'real', of: 'all', threads: 2, workloads: 1, geometricMean: 1.5 },
    ]);
  });

  it('sets what is bound by reading weights against the rate of reading', () => {
    const [one, two, ...more] = streaming(rows, { 1: 20, 2: 25 });
    expect(more).toEqual([]);
    expect(one).toMatchObject({ name: 'gpt2-decode-255', threads: 1, rate: 10, share: 0.5, peerShare: 0.25 });
    expect(two).toMatchObject({ threads: 2, rate: 12.5, share: 0.5 });
    expect(two).not.toHaveProperty('peerShare');
    expect(streaming(rows, {})).toEqual([]);
  });

  it('is a table of each set in Markdown', () => {
    const text = markdown({ command: 'npm run bench --', machine: 'M', versions: 'V', rows, rates: { 1: 20, 2: 25 } });
    expect(text).toBe(`\`npm run bench --\`

M; V.

| architectures | 1 thread: ms | peer ms | ratio | 2 threads: ms | peer ms | ratio |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
| resnet50 | 20.0 | 40.0 | 2.00 (1.90 to 2.10) | wrong answer |  |  |
| gpt2-decode-255 | 50.0 | 100.0 | 8.00 (7.00 to 9.00) | 40.0 | failed |  |
| geometric mean, bound by arithmetic |  |  | **2.00** of 1 |  |  |  |
| geometric mean, all |  |  | **4.00** of 2 |  |  |  |

| real models | 1 thread: ms | peer ms | ratio | 2 threads: ms | peer ms | ratio |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
| silero-v5 | failed |  |  | 0.500 | 0.750 | 1.50 (1.00 to 2.00) |
| geometric mean, all |  |  |  |  |  | **1.50** of 1 |

| bound by reading weights | MB | 1 thread: GB/s | of 20.0 | peer | 2 threads: GB/s | of 25.0 | peer |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
| gpt2-decode-255 | 500 | 10.0 | 50 % | 25 % | 12.5 | 50 % |  |

- resnet50: wrong answer: relative error 3.0e-2 in logits
- gpt2-decode-255: the peer failed: no such operator
- silero-v5: failed: cannot`);
  });

  it('takes the place of the table before', () => {
    const text =
      'a\n<!-- table: ort -->\nold\n<!-- end of table -->\nb\n<!-- table: ort high -->\n<!-- end of table -->\n';
    const once = replaceTable(text, 'ort', 'new');
    expect(once).toBe(
      'a\n<!-- table: ort -->\n\nnew\n\n<!-- end of table -->\nb\n<!-- table: ort high -->\n<!-- end of table -->\n',
    );
    expect(replaceTable(once, 'ort', 'new')).toBe(once);
    expect(() => replaceTable(text, 'openvino', 'new')).toThrow("no table 'openvino': give it a place between");
  });
});

const costRows = [
  { name: 'call', unit: 'µs', ours: 2.5, goal: { most: 3 } },
  {
    ...{ name: 'load', unit: 'ms', ours: 20, theirs: 38, goal: { times: 2 } },
    ...{ ratio: 1.9, lowest: 1.8, highest: 2.1 },
  },
  { name: 'load alone', unit: 'ms', ours: 20, goal: { times: 2 } },
  { name: 'memory', unit: 'times', ours: 1.04, theirs: 1.5, goal: { most: 1.1 } },
  { name: 'kernel', unit: 'share', ours: 0.87, goal: { least: 0.8 } },
  { name: 'exactness', test: 'a.cpp: a test' },
  { name: 'decode', failed: 'no such\nmodel' },
];

describe('the costs', () => {
  it('are held against their goals, where something says so', () => {
    expect(costRows.map(holds)).toEqual([true, false, undefined, true, true, undefined, false]);
    expect(costRows.slice(0, 5).map(goalText)).toEqual([
      'at most 3.00 µs',
      "2 times the peer's speed",
      "2 times the peer's speed",
      'at most 1.10',
      'at least 80 %',
    ]);
  });

  it('have a line each', () => {
    expect(costRows.map((row) => costText(row).replace(/ +/g, ' '))).toEqual([
      'call 2.50 µs at most 3.00 µs: yes',
      "load 20.0 ms 38.0 ms 1.90 (1.80 to 2.10) 2 times the peer's speed: no",
      "load alone 20.0 ms 2 times the peer's speed",
      'memory 1.04 1.50 at most 1.10: yes',
      'kernel 87 % at least 80 %: yes',
      'exactness test: a.cpp: a test',
      'decode failed: no such',
    ]);
  });

  it('are a table in Markdown', () => {
    const text = costMarkdown({ command: 'npm run bench --', machine: 'M', versions: 'V', rows: costRows });
    expect(text).toBe(`\`npm run bench --\`

M; V.

| what | ours | peer | ratio | goal | holds |
| --- | ---: | ---: | ---: | --- | --- |
| call | 2.50 µs |  |  | at most 3.00 µs | yes |
| load | 20.0 ms | 38.0 ms | 1.90 (1.80 to 2.10) | 2 times the peer's speed | **no** |
| load alone | 20.0 ms |  |  | 2 times the peer's speed |  |
| memory | 1.04 | 1.50 |  | at most 1.10 | yes |
| kernel | 87 % |  |  | at least 80 % | yes |
| exactness |  |  |  |  | test: a.cpp: a test |
| decode |  |  |  |  | failed: no such |

3 of 5 goals hold.`);
  });

  it('have names for --only, a load of each architecture among them', () => {
    const names = costs.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const { model } of workloads) expect(names).toContain(`load ${model}`);
  });

  it('name nothing that would end a cell of the table', () => {
    for (const { name } of [...accuracyTests, ...costs]) expect(name).not.toContain('|');
  });

  it.each(accuracyTests)('name tests that there are: $test', ({ file, test }) => {
    const text = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
    expect(text).toContain(`TEST_CASE("${test}")`);
  });

  it('take rates from what the program prints', () => {
    expect(parseRates('avx2 multiply-add 137.4 product 118.8\namx multiply-add 390.0 product 287.5\n')).toEqual({
      avx2: { peak: 137.4, gemm: 118.8 },
      amx: { peak: 390, gemm: 287.5 },
    });
    expect(() => parseRates('no such CPU\n')).toThrow('bench_rates said: no such CPU');
  });
});

describe('the weights that a run reads', () => {
  it('are those of the model without its tables of embeddings', () => {
    expect(weightBytes('gpt2')).toBe(651691008 - 154389504 - 3145728);
    expect(weightBytes('gpt2', 'medium')).toBe(weightBytes('gpt2') / 2);
  });

  it('are known for each workload that is bound by them', () => {
    const bound = workloads.filter(({ name }) => boundByReading.includes(name));
    expect(bound).toHaveLength(boundByReading.length);
    for (const { model } of bound) expect(weightBytes(model)).toBeGreaterThan(40e6);
  });
});

describe('frames', () => {
  const values = {
    x: { type: 'float32', dims: [3], data: Float32Array.of(1, -0, NaN) },
    none: { type: 'int64', dims: [1, 0], data: new BigInt64Array(0) },
    b: { type: 'bool', dims: [1], data: Uint8Array.of(1) },
    n: { type: 'int64', dims: [1], data: BigInt64Array.of(-5n) },
  };
  const bytes = Buffer.concat([...encodeFrame({ value: 1 }, values), ...encodeFrame({ error: 'no\nline' })]);
  const read = async (chunks) => {
    const frames = [];
    for await (const frame of readFrames(
      (async function* () {
        yield* chunks;
      })(),
    ))
      frames.push(frame);
    return frames;
  };

  it.each([1, 7, 1 << 20])('are read whatever the chunks: %d bytes', async (size) => {
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
      bytes.subarray(i * size, (i + 1) * size),
    );
    expect(await read(chunks)).toEqual([
      { message: { value: 1 }, values },
      { message: { error: 'no\nline' }, values: {} },
    ]);
  });

  it('that a stream cuts off are left out', async () => {
    expect(await read([bytes.subarray(0, bytes.length - 1)])).toHaveLength(1);
    expect(await read([])).toEqual([]);
  });

  it('hold no strings', () => {
    const text = { type: 'string', dims: [1], data: ['a'] };
    expect(() => encodeFrame({}, { text })).toThrow('text: values of type string do not travel to this engine');
  });
});
