#!/usr/bin/env python3
"""Writes cases of BeamSearch, WhisperBeamSearch, GreedySearch and Sampling over small decoders with onnxruntime's answers, for
test/native/ops/generation/generation.test.cpp.

usage: generation.py > test/fixtures/contrib-generation.txt      (needs: pip install onnx onnxruntime==1.32.0)

The decoders say what follows from all tokens, their places and the mask, so that a wrong place, mask or cache changes
what they say. onnxruntime leaves memory as it was behind the end of a greedy sequence: such cases are left out.
"""
import sys

import numpy as np
from onnx import parser

from case import Draw, answer
from written import spelt

i32, i64, f32, f16 = np.int32, np.int64, np.float32, np.float16
WORDS, END, PAD = 12, 1, 0


def initializers(**values):
    return ", ".join(spelt(name, value) for name, value in values.items())


def gpt(seed, real="float"):
    """A decoder alone: past and present hold keys and values of one layer."""
    d = Draw(seed)
    type = f16 if real == "float16" else f32
    f = lambda *shape, scale=1.0: d.floats(*shape, scale=scale).round(2).astype(type)
    values = initializers(E=f(WORDS, 4), P=f(16, 4, scale=0.7), W=f(4, WORDS, scale=2), parts=np.array([0, 0, 2, 1, 2], i64),
                          flat=np.array([0, 0, 4], i64), one=np.array([1], i64))
    return (f"g (int32[b,s] input_ids, int32[b,s] position_ids, int32[b,t] attention_mask, {real}[2,b,1,p,2] past_0) => "
            f"({real}[b,s,{WORDS}] logits, {real}[2,b,1,t,2] present_0) <{values}> {{ "
            "e = Gather(E, input_ids) q = Gather(P, position_ids) h = Add(e, q) r = Reshape(h, parts) "
            "k = Transpose<perm = [2, 0, 3, 1, 4]>(r) present_0 = Concat<axis = 3>(past_0, k) "
            "u = Transpose<perm = [1, 3, 0, 2, 4]>(present_0) v = Reshape(u, flat) "
            f"m = Cast<to = {10 if type == f16 else 1}>(attention_mask) n = Unsqueeze(m, one) c = MatMul(n, v) z = Add(h, c) "
            "a = Tanh(z) logits = MatMul(a, W) }")


def transformer(seed):
    """A decoder as onnxruntime's converter fuses it: two layers of attention with a past, and what lies between."""
    d = Draw(seed)
    f = lambda *shape, scale=1.0: d.floats(*shape, scale=scale).round(2)
    values = dict(E=f(WORDS, 4), P=f(16, 4, scale=0.7), W=f(4, WORDS, scale=2), gain=f(4), shift=f(4))
    caches, body = [], "e = Gather(E, input_ids) q = Gather(P, position_ids) h0 = Add(e, q) "
    for i in range(2):
        values |= {f"A{i}": f(4, 12), f"a{i}": f(12), f"F{i}": f(4, 4), f"f{i}": f(4)}
        caches.append(f"float[2,b,2,%s,2] %s_{i}")
        body += (f"n{i}, present_{i} = com.microsoft.Attention<num_heads = 2, unidirectional = 1>(h{i}, A{i}, a{i}, attention_mask, past_{i}) "
                 f"s{i} = com.microsoft.SkipLayerNormalization(h{i}, n{i}, gain, shift) m{i} = MatMul(s{i}, F{i}) "
                 f"g{i} = com.microsoft.FastGelu(m{i}, f{i}) h{i + 1} = Add(s{i}, g{i}) ")
    past, present = (", ".join(c % names for c in caches) for names in (("p", "past"), ("t", "present")))
    return (f"g (int32[b,s] input_ids, int32[b,s] position_ids, int32[b,t] attention_mask, {past}) => (float[b,s,{WORDS}] logits, {present}) "
            f"<{initializers(**values)}> {{ {body}logits = MatMul(h2, W) }}")


class T5:
    """An encoder, which also runs the decoder's first tokens where it is `old`, and a decoder. `speech`: the encoder
    takes sound, and no mask; `whole`: the decoder is declared to take any number of tokens, and is given all."""

    def __init__(self, seed, old=True, speech=False, whole=False):
        d = Draw(seed)
        f = lambda *shape, scale=1.0: d.floats(*shape, scale=scale).round(2)
        self.values = dict(E=f(WORDS, 4), A=f(4, 2), B=f(4, 2), C=f(4, 2), W=f(2, WORDS, scale=2), one=np.array([1], i64),
                           two=np.array([2], i64), rest=np.array([0, -1, 2], i64))
        self.old, self.speech, self.whole = old, speech, whole

    def tokens(self, ids, past):
        """Text of a step: logits and this layer's cache behind `past`."""
        join = lambda name, fresh: (f"present_{name} = Concat<axis = 2>(past_{name}, {fresh}) " if past else
                                    f"present_{name} = Identity({fresh}) ")
        side = "past" if past else "present"
        mask = "" if self.speech else "em = Cast<to = 1>(encoder_attention_mask) en = Unsqueeze(em, one) "
        cross = "cc = ReduceMean<axes = [1]>(cv) " if self.speech else "cc = MatMul(en, cv) "
        return (f"dh = Gather(E, {ids}) dk = MatMul(dh, A) dv = MatMul(dh, B) du = Unsqueeze(dk, one) dw = Unsqueeze(dv, one) "
                + join("key_self_0", "du") + join("value_self_0", "dw") + mask
                + f"ck = ReduceSum({side}_key_cross_0, two) cs = Squeeze(ck, one) cv = Reshape({side}_value_cross_0, rest) " + cross
                + "sk = ReduceSum(present_key_self_0, two) ss = Squeeze(sk, one) sv = ReduceMax<axes = [2]>(present_value_self_0) "
                "st = Squeeze(sv, one) dq = MatMul(dh, C) z1 = Add(dq, cc) z2 = Add(z1, ss) z3 = Add(z2, st) z4 = Add(z3, cs) "
                "a = Tanh(z4) logits = MatMul(a, W) ")

    def encoder(self):
        own = [f"float[b,1,d,2] present_{n}_self_0" for n in ("key", "value")]
        shared = [f"float[b,1,s,2] present_{n}_cross_0" for n in ("key", "value")]
        outputs = [f"float[b,d,{WORDS}] logits", "float[b,s,4] encoder_hidden_states", *own, *shared] if self.old else shared
        inputs = ["float[b,4,s] encoder_input_ids"] if self.speech else [
            "int32[b,s] encoder_input_ids", "int32[b,s] encoder_attention_mask"]
        inputs += ["int32[b,d] decoder_input_ids"] if self.old else []
        words = ("encoder_hidden_states = Transpose<perm = [0, 2, 1]>(encoder_input_ids) " if self.speech else
                 "encoder_hidden_states = Gather(E, encoder_input_ids) ")
        body = (words + "ek = MatMul(encoder_hidden_states, B) ev = MatMul(encoder_hidden_states, C) "
                "present_key_cross_0 = Unsqueeze(ek, one) present_value_cross_0 = Unsqueeze(ev, one) ")
        body += self.tokens("decoder_input_ids", False) if self.old else ""
        return f"e ({', '.join(inputs)}) => ({', '.join(outputs)}) <{initializers(**self.values)}> {{ {body}}}"

    def decoder(self):
        inputs = [f"int32[b,{'d' if self.whole else 1}] input_ids"] + ([] if self.speech else ["int32[b,s] encoder_attention_mask"])
        inputs += [f"float[b,1,{n},2] past_{kind}_{where}_0" for where, n in (("self", "p"), ("cross", "s")) for kind in ("key", "value")]
        outputs = [f"float[b,d,{WORDS}] logits", "float[b,1,t,2] present_key_self_0", "float[b,1,t,2] present_value_self_0"]
        body = self.tokens("input_ids", True)
        return f"d ({', '.join(inputs)}) => ({', '.join(outputs)}) <{initializers(**self.values)}> {{ {body}}}"


def text(name, array):
    kind = {"float32": "float"}.get(array.dtype.name, array.dtype.name)
    return f"{kind}[{','.join(map(str, array.shape))}] {name}"


def run(op, title, attributes, inputs, outputs, apart=()):
    """The answer and what to print. `outputs`: name -> type with its dims' names. `apart`: inputs with a row for each prompt, where
    onnxruntime is asked about one prompt at a time."""
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    attributes = ", ".join(f"{k} = {v}" for k, v in attributes.items())
    given = [(n, x) for n, x in zip(names, inputs) if n]
    node = f"{', '.join(outputs)} = com.microsoft.{op}<{attributes}>({', '.join(names)})"

    def ask(given):
        graph = f"m ({', '.join(text(n, x) for n, x in given)}) => ({', '.join(f'{t} {n}' for n, t in outputs.items())}) {{ {node} }}"
        model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]> {graph}')
        return answer(model, dict(given), title)

    rows = [slice(r, r + 1) for r in range(len(inputs[0]))] if apart else [slice(None)]
    each = [ask([(n, x[row] if n in [names[i] for i in apart] else x) for n, x in given]) for row in rows]
    answers = [np.concatenate(parts) for parts in zip(*each)]
    tolerance = "0.02" if any(x.dtype == f16 for _, x in given) else "0.0001"
    return answers, (f"{op} | {title} | 17 | {tolerance}\n{node}\n{', '.join(spelt(n, x) for n, x in given)}\n"
                     + ", ".join(spelt(n, y) for n, y in zip(outputs, answers)) + "\n")


def number(value, type=i32):
    return np.array([value], type)


IDS = np.array([[3, 5, 2], [0, 4, 6]], i32)
WORD_MASK = np.array([1, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1], i32)
FIRST_MASK = np.array([[1, 1, 0, 0, 1, 0, 1, 1, 0, 0, 0, 1], [1, 1, 1, 0, 0, 1, 0, 0, 1, 1, 1, 0]], i32)


def greedy(op, title, first_seed, attributes=None, length=8, ids=IDS, **given):
    """The first seed from `first_seed` on with which every sequence goes on to the end, but for those that may `stop`."""
    stop = given.pop("stop", False)
    order = ["min_length", "repetition_penalty", "vocab_mask", "prefix_vocab_mask", "attention_mask", "presence_mask", "seed"]
    inputs = [ids, number(length)] + [given.get(k) for k in order[:7 if op == "Sampling" else 5]]
    while inputs[-1] is None:
        inputs.pop()
    for model in range(first_seed, first_seed + 100):
        fixed = dict(decoder=gpt(model), eos_token_id=END, pad_token_id=PAD, model_type=0) | (attributes or {})
        (sequences,), lines = run(op, title, fixed, inputs, {"y0": "int32[b,n]"})
        if stop == bool((sequences[:, -2:] == PAD).any(axis=1).sum() == 1) and (sequences[:, -1] != PAD).any():
            if sequences.max() < WORDS:
                return print(lines)
    sys.exit(f"{title}: no seed will do")


def beams(title, model, inputs, scores=True, **attributes):
    fixed = dict(model) | dict(eos_token_id=END, pad_token_id=PAD) | attributes
    real = "float16" if any(x is not None and x.dtype == f16 for x in inputs) else "float"
    outputs = {"y0": "int32[b,r,n]", "y1": f"{real}[b,r]"} | ({"y2": f"{real}[l,b,k,v]"} if scores else {})
    answers, lines = run("BeamSearch", title, fixed, inputs, outputs)
    if scores and not (answers[2] < 0).all():
        sys.exit(f"{title}: steps that onnxruntime leaves as they were")
    print(lines)


def whisper(title, seed, temperature=None, processor=None, real=f32, apart=(), **more):
    """Answers of WhisperBeamSearch over speech. `processor` 1: with timestamps. `apart` as of run()."""
    attributes = dict(decoder_start_token_id=PAD, eos_token_id=END, pad_token_id=PAD, beginning_timestamp_token_id=8,
                      no_timestamps_token_id=7, translate_token_id=5, transcribe_token_id=6, start_of_lm_token_id=4)
    model = T5(seed, speech=True)
    inputs = beam_inputs(Draw(34).floats(2, 4, 5).round(2), decoder_ids=np.array([[7, 3], [7, 4]], i32), **more)
    inputs += [None if processor is None else number(processor), None, None, None if temperature is None else number(temperature, real)]
    while inputs[-1] is None:
        inputs.pop()
    _, lines = run("WhisperBeamSearch", title, dict(encoder=model.encoder(), decoder=model.decoder(), model_type=2) | attributes, inputs,
                   {"y0": "int32[b,r,n]", "y1": "float[b,r]"}, apart)
    print(lines)


def beam_inputs(ids=IDS, length=9, least=0, beams=3, returned=2, length_penalty=1.0, repetition_penalty=1.0, words=None,
                first=None, mask=None, decoder_ids=None, real=f32):
    inputs = [ids, number(length), number(least), number(beams), number(returned), number(length_penalty, real),
              number(repetition_penalty, real), words, first, mask, decoder_ids]
    while inputs[-1] is None:
        inputs.pop()
    return inputs


def main():
    greedy("GreedySearch", "prompts padded in front", 1)
    greedy("GreedySearch", "one ends before the other", 1, stop=True)
    greedy("GreedySearch", "a least length", 1, min_length=number(7))
    greedy("GreedySearch", "repeats less", 1, repetition_penalty=number(1.6, f32))
    greedy("GreedySearch", "repeats no two words", 1, attributes=dict(no_repeat_ngram_size=2))
    greedy("GreedySearch", "words left out, more of them at first", 1, vocab_mask=WORD_MASK, prefix_vocab_mask=FIRST_MASK)
    greedy("GreedySearch", "a mask", 1, attention_mask=np.array([[0, 1, 1], [1, 1, 1]], i32))
    greedy("GreedySearch", "another decoder for the prompt", 1, attributes=dict(init_decoder=gpt(91)))
    likeliest = dict(top_p=0.001, min_tokens_to_keep=1)
    greedy("Sampling", "the likeliest of each", 1, attributes=likeliest, seed=number(5))
    greedy("Sampling", "the likeliest, cooler, repeats less", 1, attributes=likeliest | dict(temperature=0.5, no_repeat_ngram_size=2),
           repetition_penalty=number(1.3, f32), seed=number(5))

    one = lambda seed, **more: dict(decoder=gpt(seed, **more), model_type=0)
    fused = dict(decoder=transformer(20), model_type=0)
    beams("a decoder of fused operators", fused, beam_inputs(), scores=False)
    beams("a decoder of fused operators, a mask", fused, beam_inputs(mask=np.array([[0, 1, 1], [1, 1, 1]], i32)), scores=False)
    beams("three beams", one(21), beam_inputs())
    beams("stops early", one(22), beam_inputs(), early_stopping=1)
    beams("long ones are welcome", one(23), beam_inputs(length_penalty=2.0), scores=False, early_stopping=1)
    beams("short ones are welcome", one(24), beam_inputs(length_penalty=-1.0), scores=False)
    beams("repeats less", one(25), beam_inputs(repetition_penalty=1.7), scores=False)
    beams("repeats no two words, a least length", one(26), beam_inputs(least=6), scores=False, no_repeat_ngram_size=2)
    beams("words left out, more of them at first", one(27), beam_inputs(words=WORD_MASK, first=FIRST_MASK), scores=False)
    beams("one beam", one(28), beam_inputs(beams=1, returned=1))
    beams("all beams of one prompt, a mask", one(29), beam_inputs(IDS[:1], beams=4, returned=4, mask=np.array([[0, 1, 1]], i32)), scores=False)

    both = lambda seed, kind=1, **more: dict(encoder=T5(seed, **more).encoder(), decoder=T5(seed, **more).decoder(), model_type=kind,
                                             decoder_start_token_id=PAD)
    beams("an encoder that begins", both(31), beam_inputs(), scores=False)
    beams("an encoder that begins, stops early", both(32), beam_inputs(beams=4, returned=3), early_stopping=1)
    beams("an encoder alone", both(33, old=False), beam_inputs(), scores=False)
    beams("an encoder that begins, a decoder of all tokens", both(36, whole=True), beam_inputs(), scores=False)
    sound = Draw(34).floats(2, 4, 5).round(2)
    forced = np.array([[7, 3], [7, 4]], i32)
    beams("speech", both(35, 2, speech=True), beam_inputs(sound, decoder_ids=forced), scores=False)
    whisper("speech", 35)
    whisper("cooler", 41, temperature=0.5)
    whisper("warmer, repeats less", 42, temperature=2.0, repetition_penalty=1.7)
    for seed in (43, 44, 47, 48, 49, 50, 51, 52):
        whisper(f"timestamps, model {seed}", seed, processor=1, length=12)
    # Whether the second prompt can still become better onnxruntime asks of scores that are partly the first one's.
    for seed in (45, 46):
        whisper(f"timestamps, model {seed}, each prompt by itself", seed, processor=1, length=12, apart=(0, 10))
    whisper("timestamps, one beam, cooler", 53, processor=1, temperature=0.7, beams=1, returned=1)


if __name__ == "__main__":
    main()
