// What the benchmark says of the machine, and the rate at which it streams memory.
import { existsSync, readFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { at } from '../../scripts/lib/project.mjs';
import { run } from '../../scripts/lib/run.mjs';

/** What /proc/cpuinfo calls the instructions that times depend on, and what readers do. */
const instructions = {
  avx2: 'AVX2',
  avx512f: 'AVX-512',
  avx512_vnni: 'VNNI',
  avx512_bf16: 'AVX512-BF16',
  avx512_fp16: 'AVX512-FP16',
  amx_tile: 'AMX',
  asimd: 'NEON',
  asimddp: 'dot products',
  i8mm: 'I8MM',
};

/**
 * The machine in words, without its name.
 * @param {{ cpuinfo: string, model: string, cores: number, bytes: number }} facts cpuinfo: Linux's text, or ''
 */
export function machineWords({ cpuinfo, model, cores, bytes }) {
  const flags = new Set(/^(?:flags|Features)\s*:(.*)$/m.exec(cpuinfo)?.[1].trim().split(/\s+/));
  const named = /^model name\s*:\s*(.*)$/m.exec(cpuinfo)?.[1] ?? model;
  const kind = flags.has('hypervisor') ? ' of a virtual machine' : '';
  const has = Object.keys(instructions).filter((flag) => flags.has(flag));
  return [
    named.trim().replace(/\s+/g, ' '),
    `${cores} core${cores === 1 ? '' : 's'}${kind}`,
    ...has.map((flag) => instructions[flag]),
    `${Math.round(bytes / 1e9)} GB of memory`,
  ].join(', ');
}

const cpuinfoPath = '/proc/cpuinfo';

export function thisMachine() {
  return machineWords({
    cpuinfo: existsSync(cpuinfoPath) ? readFileSync(cpuinfoPath, 'utf8') : '',
    model: cpus()[0]?.model ?? process.arch,
    cores: cpus().length,
    bytes: totalmem(),
  });
}

/** Whether the CPU multiplies matrices in tiles. */
export const hasMatrixUnit = () => existsSync(cpuinfoPath) && /\bamx_tile\b/.test(readFileSync(cpuinfoPath, 'utf8'));

/**
 * A program of bench/microkernels, built where `npm run build` builds.
 * @throws {Error} where nothing has been built there, or it cannot be
 */
async function benchProgram(target) {
  if (!existsSync(at('build', 'CMakeCache.txt'))) throw new Error('there is no build folder: run npm run build');
  await run('cmake', ['--build', at('build'), '--config', 'Release', '--target', target]);
  const names = [target, `Release/${target}.exe`, `${target}.exe`];
  const paths = names.map((name) => at('build', 'bench', 'microkernels', name));
  const built = paths.find((path) => existsSync(path));
  if (!built) throw new Error(`cmake built no ${paths[0]}`);
  return built;
}

/** The program that measures the rate of streaming memory. */
export const streamProgram = () => benchProgram('bench_stream');

/** The program that measures the rates of multiply-adds and of products. */
export const ratesProgram = () => benchProgram('bench_rates');

/** What ratesProgram prints: GFLOP/s by target, of multiply-adds alone (`peak`) and of a product (`gemm`). */
export function parseRates(said) {
  const lines = [...said.matchAll(/^(\w+) multiply-add ([\d.]+) product ([\d.]+)$/gm)];
  if (!lines.length) throw new Error(`bench_rates said: ${said.trim()}`);
  return Object.fromEntries(
    lines.map(([, target, peak, gemm]) => [target, { peak: Number(peak), gemm: Number(gemm) }]),
  );
}

export const rates = async (program) => parseRates(await run(program, []));

/** GB/s of reading memory with so many threads. */
export async function streamRate(program, threads) {
  const said = await run(program, [String(threads)]);
  const [, rate] = /([\d.]+) GB\/s/.exec(said) ?? [];
  if (!(Number(rate) > 0)) throw new Error(`bench_stream said: ${said.trim()}`);
  return Number(rate);
}
