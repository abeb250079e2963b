// How many bytes of weights a run reads of the architectures that are bound by reading them.
import { readFileSync } from 'node:fs';
import { at } from '../../scripts/lib/project.mjs';

/** The workloads whose time is that of reading each weight once: few positions pass through many weights. */
export const boundByReading = ['minilm_l6-16', 'gpt2-decode-255', 'llama_tiny-decode-255'];

/** Tables of which a run gathers a few rows. */
const gathered = /\.(wte|wpe|embed_tokens|\w+_embeddings)\.weight$/;

/**
 * Bytes of the weights that every run of an architecture reads, as float32, or as bfloat16 where precision is medium.
 * @param {string} model one of bench/architectures
 * @param {string} [precision]
 */
export function weightBytes(model, precision) {
  const { tensors } = JSON.parse(readFileSync(at('bench', 'architectures', `${model}.json`), 'utf8'));
  const bytes = tensors.filter(({ name }) => !gathered.test(name)).reduce((sum, tensor) => sum + tensor.bytes, 0);
  return precision === 'medium' ? bytes / 2 : bytes;
}
