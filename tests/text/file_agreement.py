"""Compares our ids for files of other tokenizer libraries with those libraries: SentencePiece .model, tiktoken's ranks, GPT-2's pair of files.

    .venv/bin/python tests/text/file_agreement.py --program BUILD/encode_main [--strings 2000] [--everything] [--shared DIR]

Exit code 77: nothing to compare with.
"""
import argparse
import base64
import io
import json
import os
import random
import shutil
import sys
import tempfile
from fractions import Fraction

from agreement import SHARED, compare, corpus, corpus_lines, hostile, run, training_text

try:
    import sentencepiece
    import tiktoken
    from tokenizers import Tokenizer
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
# Patterns as tiktoken writes them today. Ours are those that the families published.
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s")
O200K = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])

SYMBOLS = ["<sep>", "▁the", "foo bar", "ab", "日本"]


def trained(text, **settings):
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(text.splitlines()), model_writer=out, minloglevel=2,
                                             hard_vocab_limit=False, num_threads=1, **settings)
    return out.getvalue()


def sentencepiece_models(shared):
    text = training_text(shared)
    if corpus("sentencepiece_test_unigram1k.model", shared):
        yield "unigram 1k", open(corpus("sentencepiece_test_unigram1k.model", shared), "rb").read()
    yield "unigram, bytes, symbols", trained(text, vocab_size=1500, byte_fallback=True, user_defined_symbols=SYMBOLS)
    yield "unigram, case folded", trained(text, vocab_size=800, normalization_rule_name="nmt_nfkc_cf", add_dummy_prefix=False)
    yield "bpe as llama-2", trained(text, vocab_size=1500, model_type="bpe", byte_fallback=True, split_digits=True,
                                    normalization_rule_name="identity", remove_extra_whitespaces=False)
    yield "bpe, symbols", trained(text, vocab_size=1200, model_type="bpe", user_defined_symbols=SYMBOLS, character_coverage=0.99)
    yield "bpe across words", trained(text, vocab_size=1200, model_type="bpe", split_by_whitespace=False,
                                      allow_whitespace_only_pieces=True, remove_extra_whitespaces=False)


def check_sentencepiece(program, name, model, texts, ordinary, folder):
    path = os.path.join(folder, "tokenizer.model")
    open(path, "wb").write(model)
    reference = sentencepiece.SentencePieceProcessor(model_proto=model)
    theirs = reference.encode(texts)
    wrong = compare("encode", texts, theirs, run(program, path, "encode", texts))
    # If text is not UTF-8, the number of U+FFFD depends on the decoder. Skip such texts.
    pairs = [(ids, text) for ids, text in zip(theirs[:4000], reference.decode(theirs[:4000])) if "\ufffd" not in text]
    wrong += compare("decode", [i for i, _ in pairs], [t for _, t in pairs], run(program, path, "decode", [i for i, _ in pairs]))
    # The tokenizer.json of a checkpoint gives the same ids. Hugging Face gives them for ordinary text.
    carried = os.path.join(folder, "tokenizer.json")
    open(carried, "w", encoding="utf-8").write(run(program, path, "file", [""])[0])
    wrong += compare("carried", texts[:500], theirs[:500], run(program, carried, "encode", texts[:500]))
    named = [reference.id_to_piece(i) for i in range(reference.get_piece_size())
             if reference.is_control(i) or reference.is_unknown(i)] + [s.replace("▁", " ") for s in SYMBOLS]  # Hugging Face searches for these first
    ordinary = [line for line in ordinary if not any(name in " " + line for name in named)]
    hf = [e.ids for e in Tokenizer.from_file(carried).encode_batch(ordinary, add_special_tokens=False)]
    wrong += compare("Hugging Face", *without_ties(name, reference, ordinary, hf, reference.encode(ordinary)))
    for i in range(0, len(model), max(1, len(model) // 7)):  # a file that is cut anywhere is an error
        torn = os.path.join(folder, "torn.model")
        open(torn, "wb").write(model[:i])
        out = refusal(program, torn)
        if "torn.model" not in out:
            print(f"  torn after {i} bytes: {out}")
            wrong += 1
    print(f"sentencepiece {name}: {len(texts)} strings, {sum(map(len, theirs))} tokens, {wrong} differ")
    return wrong


def without_ties(name, reference, texts, hf, theirs):
    """Removes the strings that Hugging Face cuts differently although both cuts have exactly the same unigram score.

    Rounding decides between such cuts: float64 additions in Hugging Face, float32 additions in SentencePiece.
    Here we sum the scores without rounding.
    """
    def score(ids):
        return sum(Fraction(reference.get_score(i)) for i in ids), ids.count(reference.unk_id())

    def tied(a, b):
        return "unigram" in name and a != b and score(a) == score(b) and reference.decode(a) == reference.decode(b)

    kept = [(x, a, b) for x, a, b in zip(texts, hf, theirs) if not tied(a, b)]
    if len(kept) < len(texts):
        print(f"  Hugging Face breaks {len(texts) - len(kept)} ties of {len(texts)} strings otherwise")
    return [[case[column] for case in kept] for column in range(3)]


def refusal(program, path):
    import subprocess
    out = subprocess.run([program, path, "encode"], input="", capture_output=True, text=True)
    return out.stderr if out.returncode == 1 else f"exit code {out.returncode}"


def check_tiktoken(program, shared, texts, folder):
    bytes_of = {chr(c): b for b, c in enumerate(byte_alphabet())}
    encoder = json.load(open(corpus("gpt2_encoder.json", shared), encoding="utf-8"))
    ranks = {bytes(bytes_of[c] for c in token): i for token, i in encoder.items() if i < 50256}
    wrong = 0
    plain = [t for t in texts if "<|endo" not in t]
    for name, pattern in [("gpt2.tiktoken", GPT2), ("my.cl100k.tiktoken", CL100K), ("my.o200k.tiktoken", O200K)]:
        some = ranks if "gpt2" in name else {t: i for t, i in ranks.items() if i < 40000}
        path = os.path.join(folder, name)
        with open(path, "wb") as f:
            f.writelines(base64.b64encode(t) + b" %d\n" % i for t, i in some.items())
        reference = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=some, special_tokens={"<|endoftext|>": len(some)})
        bad = compare(name, plain, reference.encode_ordinary_batch(plain, num_threads=2), run(program, path, "encode", plain))
        with_special = [t for t in texts if "<|endo" in t][:200] + ["a<|endoftext|>b"]
        bad += compare(name, with_special, [reference.encode(t, allowed_special="all") for t in with_special],
                       run(program, path, "encode", with_special))
        print(f"tiktoken {name}: {len(plain)} strings, {bad} differ")
        wrong += bad
    unclear = os.path.join(folder, "mine.tiktoken")
    shutil.copy(path, unclear)
    if "split pattern" not in refusal(program, unclear):
        print(f"  {refusal(program, unclear)}")
        wrong += 1
    return wrong


def byte_alphabet():
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    return [b if b in printable else 256 + sum(o not in printable for o in range(b)) for b in range(256)]


def check_pairs(program, shared, texts, folder):
    reference = Tokenizer.from_file(corpus("gpt2_tokenizer.json", shared))
    theirs, wrong = [e.ids for e in reference.encode_batch(texts)], 0
    for vocab, merges in [("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe")]:
        pair = os.path.join(folder, vocab + ".pair")
        os.makedirs(pair)
        shutil.copy(corpus("gpt2_encoder.json", shared), os.path.join(pair, vocab))
        shutil.copy(corpus("gpt2_vocab.bpe", shared), os.path.join(pair, merges))
        wrong += compare(vocab, texts, theirs, run(program, pair, "encode", texts))
    print(f"GPT-2's pairs of files: {len(texts)} strings, {wrong} differ")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--strings", type=int, default=1000)
    parser.add_argument("--everything", action="store_true", help="all of the corpus, not a part")
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--only")
    parser.add_argument("--shared", default=SHARED)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    lines = list(corpus_lines(args.shared, args.everything, 60000))
    texts = [""] + [hostile(rng) for _ in range(args.strings)] + lines
    texts += ["".join(rng.choice("abcde ▁") for _ in range(rng.randint(1, 40))) for _ in range(args.strings // 2)]
    texts.append(" ".join("".join(lines).split())[:300_000])  # long enough that SentencePiece restarts its sums
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, model in sentencepiece_models(args.shared):
            if args.only in (None, name):
                windows = [line.rstrip("\r\n") + "\r\n" for line in lines[:500] or ["a", " b "]]
                wrong += check_sentencepiece(args.program, name, model, texts, lines + windows, folder)
        if corpus("gpt2_encoder.json", args.shared) and args.only in (None, "gpt2"):
            wrong += check_tiktoken(args.program, args.shared, texts, folder)
            wrong += check_pairs(args.program, args.shared, texts[:2000], folder)
    print(f"sentencepiece {sentencepiece.__version__}, tiktoken {tiktoken.__version__}: "
          f"{'all equal' if wrong == 0 else f'{wrong} differ'}")
    sys.exit(wrong != 0)


main()
