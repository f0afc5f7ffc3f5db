"""Helpers for comparisons with other tokenizers: training text, strings that are hard for tokenizers, running our tokenizer."""
import gzip
import json
import os
import random
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED = os.environ.get("MEGALITH_SHARED", os.path.join(ROOT, "..", "shared"))


def corpus(name, shared=None):
    """Returns a file of the shared corpus, or None."""
    path = os.path.join(shared or SHARED, "corpus", name)
    return path if os.path.exists(path) else None


def corpus_lines(shared, everything, limit=200000):
    """Returns real text if it exists: lines of the small files, up to `limit` characters of each, or the whole corpus."""
    for name in ["tinyshakespeare.txt", "wikitext2_valid.txt", "wikitext2_test.txt", "botchan.txt", "books.txt.gz"]:
        path = corpus(name, shared)
        if path and (everything or name in ("tinyshakespeare.txt", "wikitext2_valid.txt")):
            opened = gzip.open(path, "rt", encoding="utf-8", newline="") if path.endswith(".gz") else open(path, encoding="utf-8", newline="")
            with opened as f:
                yield from (f.read() if everything else f.read(limit)).splitlines(keepends=True)


def training_text(shared):
    """Returns real text if it exists; otherwise generated words with a long-tailed distribution."""
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
    """Returns a string that is hard for tokenizers."""
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
