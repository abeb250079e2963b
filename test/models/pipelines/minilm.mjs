// Sentence embeddings: WordPiece tokens, the encoder, the mean over the tokens, length one.
import { readFileSync } from 'node:fs';

/** Splits as BERT's uncased tokenizer does: lower case, no accents, punctuation apart, then the longest known pieces. */
function tokenizer(path) {
  const { vocab } = JSON.parse(readFileSync(path, 'utf8')).model;
  const pieces = (word) => {
    const ids = [];
    for (let from = 0; from < word.length;) {
      let to = word.length;
      while (to > from && !((from ? '##' : '') + word.slice(from, to) in vocab)) to--;
      if (to === from) return [vocab['[UNK]']];
      ids.push(vocab[(from ? '##' : '') + word.slice(from, to)]);
      from = to;
    }
    return ids;
  };
  return (text) => {
    const clean = text
      .toLowerCase()
      .normalize('NFD')
      .replace(/\p{Mn}/gu, '');
    const words = clean.match(/[\p{P}\p{S}]|[^\s\p{P}\p{S}]+/gu) ?? [];
    return [vocab['[CLS]'], ...words.flatMap(pieces), vocab['[SEP]']];
  };
}

export async function loadEmbedder(ort, { model, tokenizer: tokens }, options) {
  const session = await ort.InferenceSession.create(model, options);
  const encode = tokenizer(tokens);

  async function embed(texts) {
    const batch = texts.map(encode);
    const length = Math.max(...batch.map((ids) => ids.length));
    const fill = (value) =>
      BigInt64Array.from(batch.flatMap((ids) => Array.from({ length }, (_, i) => BigInt(value(ids, i)))));
    const tensor = (data) => new ort.Tensor('int64', data, [batch.length, length]);
    const { last_hidden_state } = await session.run({
      input_ids: tensor(fill((ids, i) => ids[i] ?? 0)),
      attention_mask: tensor(fill((ids, i) => (i < ids.length ? 1 : 0))),
      token_type_ids: tensor(fill(() => 0)),
    });
    const width = last_hidden_state.dims[2];
    return batch.map((ids, b) => {
      const mean = new Float64Array(width);
      ids.forEach((_, i) => {
        for (let d = 0; d < width; d++) mean[d] += last_hidden_state.data[(b * length + i) * width + d] / ids.length;
      });
      const norm = Math.hypot(...mean);
      return mean.map((value) => value / norm);
    });
  }

  return { embed, release: () => session.release() };
}

export const cosine = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
