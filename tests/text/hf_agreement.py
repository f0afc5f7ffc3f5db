"""Compares ids and text with Hugging Face `tokenizers`, per family, on hostile strings and on real text (if ../shared exists).

    .venv/bin/python tests/text/hf_agreement.py --program BUILD/encode_main [--strings 500] [--everything] [--shared DIR]
                                                [--family NAME]

--everything takes all of the shared corpus, and --strings applies, for one member of each family. If the files of a family are missing, a tokenizer is trained here with the components of that family. Exit code 77: nothing to compare with.
"""
import argparse
import io
import json
import os
import random
import subprocess
import sys
import tempfile

from agreement import SHARED, compare, corpus_lines, hostile, run, training_text

try:
    import tokenizers
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
except ImportError:
    print("skipped: the Python package `tokenizers` is not installed")
    sys.exit(77)

try:
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2
except ImportError:
    sentencepiece = None

# Split patterns as published in the tokenizer.json files of the families.
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

FAMILIES = ["gpt2", "llama3", "qwen2", "llama2", "bert", "t5"]
EXACT_TEXT = ["gpt2", "byte-level", "llama3", "digits"]
CHUNK = 40000  # strings


def add_specials(tokenizer, names, **flags):
    tokenizer.add_special_tokens([AddedToken(n, special=True, normalized=False, **flags) for n in names])
    return tokenizer


def byte_level_bpe(text, pre, normalizer=None, ignore_merges=False, specials=("<|endoftext|>",)):
    t = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    t.normalizer = normalizer
    t.pre_tokenizer = pre
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator([text], trainers.BpeTrainer(vocab_size=1500, special_tokens=list(specials), show_progress=False,
                                                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return t


def split_then_bytes(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def fallback_bpe(text, metaspace, scheme="first"):
    bytes_ = [f"<0x{b:02X}>" for b in range(256)]
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    mark = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    t.pre_tokenizer = mark
    t.train_from_iterator([text], trainers.BpeTrainer(vocab_size=1500, show_progress=False, limit_alphabet=60,
                                                      special_tokens=["<unk>", "<s>", "</s>"] + bytes_))
    # Byte tokens are in the vocabulary, but are not added tokens.
    data = json.loads(t.to_str())
    data["added_tokens"] = data["added_tokens"][:3]
    t = Tokenizer.from_str(json.dumps(data))
    if not metaspace:
        t.pre_tokenizer = None
        t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    else:
        t.pre_tokenizer = mark
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    return t


def wordpiece(text, lowercase):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    t.train_from_iterator([text], trainers.WordPieceTrainer(vocab_size=2000, special_tokens=names, show_progress=False))
    t.post_processor = processors.BertProcessing(("[SEP]", t.token_to_id("[SEP]")), ("[CLS]", t.token_to_id("[CLS]")))
    return t


def unigram(text, normalizer, pre, byte_fallback=False, specials=("<pad>", "</s>", "<unk>")):
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizer
    t.pre_tokenizer = pre
    extra = [f"<0x{b:02X}>" for b in range(256)] if byte_fallback else []
    t.train_from_iterator([text], trainers.UnigramTrainer(vocab_size=1500 + len(extra), special_tokens=list(specials) + extra,
                                                          unk_token="<unk>", show_progress=False))
    data = json.loads(t.to_str())
    data["model"]["byte_fallback"] = byte_fallback
    data["added_tokens"] = data["added_tokens"][:len(specials)]
    t = Tokenizer.from_str(json.dumps(data))
    t.decoder = decoders.Metaspace()
    t.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>",
                                                     special_tokens=[("</s>", t.token_to_id("</s>"))])
    return t


def charsmap(text, rules):
    """Returns SentencePiece's table of rewriting rules (nfkc, nmt_nfkc, nmt_nfkc_cf), as its trainer writes it."""
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(text.splitlines()[:300]), model_writer=out, vocab_size=120,
                                             normalization_rule_name=rules, hard_vocab_limit=False, minloglevel=2)
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(out.getvalue())
    return normalizers.Precompiled(model.normalizer_spec.precompiled_charsmap)


def unigram_families(text):
    words = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")])
    nmt, folding = charsmap(text, "nmt_nfkc"), charsmap(text, "nmt_nfkc_cf")
    yield "t5", unigram(text, nmt, words)
    yield "t5 case folded", unigram(text, folding, words)
    yield "unigram one space", unigram(
        text, normalizers.Sequence([nmt, normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "▁")]),
        pre_tokenizers.Metaspace(prepend_scheme="first"))
    yield "albert", unigram(
        text, normalizers.Sequence([normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(),
                                    normalizers.StripAccents(), normalizers.Lowercase(), nmt]), words)
    yield "unigram with byte fallback", unigram(text[:20000], normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()]),
                                                pre_tokenizers.Metaspace(split=False), byte_fallback=True)
    yield "unigram, whole text", unigram(text[:20000], None, None)


def families(shared, program):
    text = training_text(shared)[:80000]
    corpus = lambda name: os.path.join(shared, "corpus", name)
    yield "byte-level", byte_level_bpe(text, pre_tokenizers.ByteLevel(add_prefix_space=False))
    yield "byte-level with prefix space", byte_level_bpe(text, pre_tokenizers.ByteLevel(add_prefix_space=True))
    yield "llama3", byte_level_bpe(text, split_then_bytes(LLAMA3), ignore_merges=True)
    yield "qwen2", byte_level_bpe(text, split_then_bytes(QWEN2), normalizers.NFC())
    yield "digits", byte_level_bpe(text, pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                                 pre_tokenizers.ByteLevel(add_prefix_space=False)]))
    yield "llama2", fallback_bpe(text, metaspace=False)
    yield "metaspace first", fallback_bpe(text, metaspace=True)
    yield "metaspace always", fallback_bpe(text, metaspace=True, scheme="always")
    yield "bert", wordpiece(text, True)
    yield "bert cased", wordpiece(text, False)
    if sentencepiece:
        yield from unigram_families(text)
    else:
        print("Unigram families skipped: the Python package `sentencepiece` is not installed")
    stripping = byte_level_bpe(text, pre_tokenizers.ByteLevel(add_prefix_space=False))
    yield "stripping special tokens", add_specials(stripping, ["[MASK]"], lstrip=True, rstrip=True, single_word=True)
    if os.path.exists(corpus("gpt2_tokenizer.json")):
        yield "gpt2", Tokenizer.from_file(corpus("gpt2_tokenizer.json"))


def check_family(program, name, reference, texts, folder):
    path = os.path.join(folder, "tokenizer.json")
    reference.save(path)
    data = json.loads(reference.to_str())
    specials = [t["content"] for t in data["added_tokens"]]
    wrong = tokens = 0
    for begin in range(0, len(texts), CHUNK):
        some = texts[begin:begin + CHUNK]
        theirs = [e.ids for e in reference.encode_batch(some, add_special_tokens=False)]
        wrong += compare("encode", some, theirs, run(program, path, "encode", some))
        tokens += sum(map(len, theirs))
        if name in EXACT_TEXT:  # no normalizer: decoding returns the text
            plain = [(ids, text) for ids, text in zip(theirs, some) if not any(special in text for special in specials)]
            wrong += compare("round trip", [i for i, _ in plain], [t for _, t in plain],
                             run(program, path, "decode", [i for i, _ in plain]))
        elif begin == 0:
            # If bytes are not UTF-8, the number of U+FFFD depends on the decoder. Skip such texts.
            decoded = [(ids, reference.decode(ids)) for ids in theirs]
            decoded = [(ids, text) for ids, text in decoded if "\ufffd" not in text]
            wrong += compare("decode", [i for i, _ in decoded], [t for _, t in decoded],
                             run(program, path, "decode", [i for i, _ in decoded]))
    some = texts[:300]
    wrong += compare("encode with special tokens", some, [e.ids for e in reference.encode_batch(some)],
                     run(program, path, "encode_special", some))
    print(f"{name}: {len(texts)} strings, {tokens} tokens, {wrong} differ", flush=True)
    return wrong


def check_trainer(program, shared, folder):
    """Our trainer learns the same as Hugging Face's, and Hugging Face reads what we write."""
    text, path = training_text(shared), os.path.join(folder, "text.txt")
    open(path, "w", encoding="utf-8", newline="").write(text)
    ours_text = subprocess.run([program, "2000", "train", path], capture_output=True, text=True, check=True).stdout
    ours, theirs = Tokenizer.from_str(ours_text), Tokenizer(models.BPE())
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.train_from_iterator([text], trainers.BpeTrainer(vocab_size=2000, special_tokens=["<|endoftext|>"], show_progress=False,
                                                           initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    a, b = json.loads(theirs.to_str())["model"], json.loads(ours.to_str())["model"]
    wrong = int(a["vocab"] != b["vocab"]) + int(a["merges"] != b["merges"])
    if wrong:
        at = next((i for i, (x, y) in enumerate(zip(a["merges"], b["merges"])) if x != y), -1)
        print(f"  merges differ from {at}: theirs {a['merges'][at:at + 4]}, ours {b['merges'][at:at + 4]}")
    print(f"trainer: {len(b['vocab'])} tokens, {'differ' if wrong else 'equal'}")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--strings", type=int, default=500)
    parser.add_argument("--everything", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--family")
    parser.add_argument("--shared", default=SHARED)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    texts = ["", "".join(corpus_lines(args.shared, False, 30000))] + [hostile(rng) for _ in range(args.strings)]
    everything = texts + list(corpus_lines(args.shared, True)) if args.everything else texts
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, reference in families(args.shared, args.program):
            if args.family in (None, name):
                wrong += check_family(args.program, name, reference, everything if name in FAMILIES else texts[:3000], folder)
        if args.family is None:
            wrong += check_trainer(args.program, args.shared, folder)
    print(f"tokenizers {tokenizers.__version__}: {'all equal' if wrong == 0 else f'{wrong} differ'}")
    sys.exit(wrong != 0)


main()
