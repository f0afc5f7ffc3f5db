"""Ids and text against Hugging Face `tokenizers`, family by family, on hostile strings and (where ../shared is) real text.

    .venv/bin/python tests/text/hf_agreement.py --program BUILD/encode_main [--strings 2000] [--shared DIR] [--family NAME]

Families whose files are not at hand are trained here with that family's components. Exit code 77: nothing to compare with.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

try:
    import tokenizers
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
except ImportError:
    print("skipped: the Python package `tokenizers` is not installed")
    sys.exit(77)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Split patterns as published in the families' tokenizer.json files.
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")


def training_text(shared):
    """Real text where there is some; otherwise made-up words with a long tail."""
    path = os.path.join(shared, "corpus", "botchan.txt")
    if os.path.exists(path):
        return open(path, encoding="utf-8").read()
    rng = random.Random(7)
    words = ["".join(rng.choice("etaoinshrdlu") for _ in range(rng.randint(1, 9))) for _ in range(3000)]
    return " ".join(words[int(rng.paretovariate(0.7)) % 3000] + rng.choice(["", ",", ".", "'s", "\n", " é 日本 12 "])
                    for _ in range(60000))


def assigned(rng, top):
    while True:
        code = rng.randrange(top)
        if not 0xD800 <= code <= 0xDFFF:
            return chr(code)


def hostile(rng):
    """One string of a kind that breaks tokenizers."""
    pieces = {
        "words": lambda: " ".join(rng.choice(["the", "Don't", "we'll", "I'M", "naïve", "Straße", "ÉCOLE", "x1y22z333",
                                              "hello,", "(world)", "日本語", "русский", "العربية", "हिन्दी", "ไทย"])
                                  for _ in range(rng.randint(1, 12))),
        "planes": lambda: "".join(assigned(rng, rng.choice([0x80, 0x800, 0x3000, 0x10000, 0x20000, 0x110000]))
                                  for _ in range(rng.randint(1, 30))),
        "spaces": lambda: "".join(rng.choice(["  ", " ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u2003", "\u180e", "\u200b",
                                              "\x0b", "\x85", "a", "1", "."]) for _ in range(rng.randint(1, 40))),
        "run": lambda: rng.choice([" ", "a", "=", "\n", "日", "0", "é", "'", "🙂"]) * rng.choice([1, 2, 3, 7, 30, 120, 400]),
        "emoji": lambda: "".join(rng.choice(["👩‍👩‍👧‍👦", "🇩🇪", "👍🏽", "❤️", "🏳️‍🌈", "1️⃣", " "]) for _ in range(rng.randint(1, 8))),
        "marks": lambda: "".join(rng.choice("aeoİıſß") + rng.choice(["", "\u0301", "\u0308", "\u0327\u0301"])
                                 for _ in range(rng.randint(1, 12))),
        "special": lambda: rng.choice(["", "a", " ", "a "]) + rng.choice(
            ["<|endoftext|>", "<s>", "</s>", "[MASK]", "[CLS]", "<unk>", "<0x41>", "<|endoftext", "|>", "[mask]"])
            + rng.choice(["", "b", " ", " b", "\n"]),
        "control": lambda: "".join(chr(rng.randrange(0x20)) for _ in range(rng.randint(1, 6))),
        "contractions": lambda: rng.choice(["I", "they", "1", "."]) + rng.choice(["'", "’"]) + rng.choice(
            ["s", "T", "re", "Ve", "m", "LL", "d", "l", "r", "sx", "ſ"]),
        "marker": lambda: rng.choice(["▁", "▁▁a", "a▁b", " ▁", "##ing", "Ġ", "Ċ"]),
    }
    return "".join(pieces[rng.choice(list(pieces))]() for _ in range(rng.randint(1, 4)))


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
    # Byte tokens belong to the vocabulary, but are not added tokens.
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


def families(shared, program):
    text = training_text(shared)
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
    stripping = byte_level_bpe(text, pre_tokenizers.ByteLevel(add_prefix_space=False))
    yield "stripping special tokens", add_specials(stripping, ["[MASK]"], lstrip=True, rstrip=True, single_word=True)
    if os.path.exists(corpus("gpt2_tokenizer.json")):
        yield "gpt2", Tokenizer.from_file(corpus("gpt2_tokenizer.json"))


def run(program, path, mode, lines):
    out = subprocess.run([program, path, mode], input="\n".join(json.dumps(x) for x in lines) + "\n",
                         capture_output=True, text=True)
    if out.returncode != 0:
        sys.exit(f"{mode} failed: {out.stderr}")
    return [json.loads(line) for line in out.stdout.split("\n") if line]


def compare(what, texts, theirs, ours):
    bad = [(x, a, b) for x, a, b in zip(texts, theirs, ours) if a != b]
    for x, a, b in bad[:3]:
        at = next((i for i, (p, q) in enumerate(zip(a, b)) if p != q), min(len(a), len(b)))
        print(f"  {what}: {str(x)[:200]!a}\n    theirs {a[max(0, at - 3):at + 8]!a}\n    ours   {b[max(0, at - 3):at + 8]!a} (at {at})")
    return len(bad)


def check_family(program, name, reference, texts, folder):
    path = os.path.join(folder, "tokenizer.json")
    reference.save(path)
    theirs = [e.ids for e in reference.encode_batch(texts, add_special_tokens=False)]
    wrong = compare("encode", texts, theirs, run(program, path, "encode", texts))
    some = texts[:300]
    wrong += compare("encode with special tokens", some, [e.ids for e in reference.encode_batch(some)],
                     run(program, path, "encode_special", some))
    # Bytes that are not UTF-8 decode to U+FFFD in a number that is up to the decoder: such texts are left out.
    decoded = [(ids, reference.decode(ids)) for ids in theirs]
    decoded = [(ids, text) for ids, text in decoded if "\ufffd" not in text]
    wrong += compare("decode", [i for i, _ in decoded], [t for _, t in decoded], run(program, path, "decode", [i for i, _ in decoded]))
    print(f"{name}: {len(texts)} strings, {sum(map(len, theirs))} tokens, {wrong} differ")
    return wrong


def check_trainer(program, shared, folder):
    """Our trainer learns what theirs learns, and they read what we write."""
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
    parser.add_argument("--strings", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--family")
    parser.add_argument("--shared", default=os.environ.get("MEGALITH_SHARED", os.path.join(ROOT, "..", "shared")))
    args = parser.parse_args()
    rng = random.Random(args.seed)
    texts = [""] + [hostile(rng) for _ in range(args.strings)]
    for name in ["tinyshakespeare.txt", "wikitext2_valid.txt"]:
        path = os.path.join(args.shared, "corpus", name)
        if os.path.exists(path):
            texts.append(open(path, encoding="utf-8").read()[:200000])
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, reference in families(args.shared, args.program):
            if args.family in (None, name):
                wrong += check_family(args.program, name, reference, texts, folder)
        if args.family is None:
            wrong += check_trainer(args.program, args.shared, folder)
    print(f"tokenizers {tokenizers.__version__}: {'all equal' if wrong == 0 else f'{wrong} differ'}")
    sys.exit(wrong != 0)


main()
