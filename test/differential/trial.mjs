// One graph against its variants.
import { difference } from './compare.mjs';
import { exposed } from './generate.mjs';
import { knownOfPeer } from './peer-differences.mjs';
import { tolerances } from './tolerance.mjs';
import { plain } from './variants.mjs';

/** What each value of a graph is, computed in the plainest way. */
export async function reference(engines, write, { graph, feeds, kinds }) {
  const { outputs, ...refusal } = await engines.play(write(exposed(graph, kinds)), feeds, { options: plain });
  return outputs ? { known: { ...feeds, ...outputs[0] } } : refusal;
}

/**
 * Runs a variant and says how it differs from what is known.
 * @returns {Promise<{ text: string, output?: string, fault?: boolean } | undefined>}
 */
export async function differs(engines, write, subject, expected, [name, variant]) {
  const { graph, feeds, seed } = subject;
  const answer = await variant.run(engines, { graph, feeds, seed, write, model: write(graph), known: expected.known });
  const named = (text, more) => ({ variant: name, text, ...more });
  if (variant.peer && !answer.outputs) return undefined; // it takes fewer models, and some end it
  if (answer.fault) return named(answer.fault, { fault: true });
  if (expected.error) return answer.error ? undefined : named(`runs what the plain session refuses: ${expected.error}`);
  if (answer.error) return named(`refuses what the plain session runs: ${answer.error}`);
  let allowed; // looked at where a bit differs
  for (const outputs of answer.outputs) {
    for (const output of graph.outputs.map((each) => each.name)) {
      if (variant.peer && !(output in outputs)) continue;
      if (!difference(outputs[output], expected.known[output], 0)) continue;
      allowed ??= tolerances(graph, expected.known, variant.units);
      const text = difference(outputs[output], expected.known[output], allowed[output] ?? 0);
      if (!text || (variant.peer && knownOfPeer(graph, output, expected.known))) continue;
      return named(`${output}: ${text}`, { output });
    }
  }
  return undefined;
}

/**
 * @param {object} subject from generate()
 * @param {[name: string, variant: object][]} variants
 * @returns {Promise<{ refused?: string, found: object[] }>}
 */
export async function trial(engines, write, subject, variants) {
  const expected = await reference(engines, write, subject);
  if (expected.fault) return { found: [{ variant: 'plain', text: expected.fault, fault: true }] };
  const found = [];
  for (const variant of variants) {
    const difference = await differs(engines, write, subject, expected, variant);
    if (difference) found.push(difference);
  }
  return { refused: expected.error, found };
}
