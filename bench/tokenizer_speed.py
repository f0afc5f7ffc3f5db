"""Compares tokenizer speed: Megalith, Hugging Face `tokenizers` and `tiktoken` on the same 12 MB of books, 2 threads, in turns.

    .venv/bin/python bench/tokenizer_speed.py [--program build/encode_main] [--rounds 5] [--shared ../shared]

GPT-2's vocabulary. Megalith runs the code of `megalith tokenize`, from text files to shards. The others get the text as lines in
memory. Each round starts new processes. The time to load a tokenizer does not count. Then it trains a byte-level BPE of 32000 tokens,
and measures time and memory of the whole process. Prints a table, and writes bench/results/tokenizers.json.
"""
import argparse
import base64
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def theirs(kind, corpus, path):
    """Runs in a separate process; prints seconds and tokens."""
    lines = open(path, encoding="utf-8", newline="").read().splitlines(keepends=True)
    if kind == "tokenizers":
        from tokenizers import Tokenizer
        tokenizer = Tokenizer.from_file(os.path.join(corpus, "gpt2_tokenizer.json"))
        begin = time.perf_counter()
        tokens = sum(len(e.ids) for e in tokenizer.encode_batch(lines))
    else:
        import tiktoken
        printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
        alphabet = {chr(b if b in printable else 256 + sum(o not in printable for o in range(b))): b for b in range(256)}
        encoder = json.load(open(os.path.join(corpus, "gpt2_encoder.json"), encoding="utf-8"))
        ranks = {bytes(alphabet[c] for c in token): i for token, i in encoder.items() if i < 50256}
        tokenizer = tiktoken.Encoding("gpt2", pat_str=GPT2, mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 50256})
        # Its threads are faster with larger documents than with lines.
        documents = ["".join(lines[i:i + 2000]) for i in range(0, len(lines), 2000)]
        begin = time.perf_counter()
        tokens = sum(map(len, tokenizer.encode_ordinary_batch(documents, num_threads=2)))
    print(json.dumps([time.perf_counter() - begin, tokens]))


def train_theirs(path, out):
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.train([path], trainers.BpeTrainer(vocab_size=32000, special_tokens=["<|endoftext|>"], show_progress=False,
                                        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.save(out)


def measured(command, **kwargs):
    """Returns the standard output, the seconds and the peak memory (MB) of a command."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "RAYON_NUM_THREADS": "2"}, **kwargs)
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"failed: {command}")
    return out, time.perf_counter() - begin, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=os.path.join(ROOT, "build", "encode_main"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shared", default=os.environ.get("MEGALITH_SHARED", os.path.join(ROOT, "..", "shared")))
    args = parser.parse_args()
    corpus = os.path.join(args.shared, "corpus")
    with tempfile.TemporaryDirectory() as folder:
        path, held_out = os.path.join(folder, "books.txt"), os.path.join(folder, "held_out.txt")
        with gzip.open(os.path.join(corpus, "books.txt.gz"), "rt", encoding="utf-8", newline="") as f:
            open(path, "w", encoding="utf-8", newline="").write(f.read(12_000_000))
            open(held_out, "w", encoding="utf-8", newline="").write(f.read(2_000_000))
        size = os.path.getsize(path)
        speeds, memory, me = {"megalith": [], "tokenizers": [], "tiktoken": []}, {}, [sys.executable, os.path.abspath(__file__)]
        for _ in range(args.rounds):
            for name in speeds:
                ours = [args.program, os.path.join(corpus, "gpt2_tokenizer.json"), "tokenize", os.path.join(folder, "shard"), path]
                out, _, rss = measured(ours if name == "megalith" else me + ["theirs", name, corpus, path])
                speeds[name].append(size / 1e6 / json.loads(out)[0])
                memory[name] = max(memory.get(name, 0), rss)
        medians = {name: statistics.median(values) for name, values in speeds.items()}
        print(f"{'':12}{'MB/s':>8}{'ours is':>10}{'memory MB':>11}")
        for name, value in medians.items():
            print(f"{name:12}{value:8.1f}{medians['megalith'] / value:9.1f}x{memory[name]:11.0f}")

        from tokenizers import Tokenizer
        training, sizes, text = {"megalith": [], "tokenizers": []}, {}, open(held_out, encoding="utf-8", newline="").read()
        train_memory = {}
        for _ in range(max(1, args.rounds // 2)):
            for name in training:
                out_file = os.path.join(folder, name + ".json")
                out, seconds, rss = measured([args.program, "32000", "train", path] if name == "megalith"
                                             else me + ["train", path, out_file])
                if name == "megalith":
                    open(out_file, "w", encoding="utf-8").write(out)
                training[name].append(seconds)
                train_memory[name] = max(train_memory.get(name, 0), rss)
                sizes[name] = sum(len(e.ids) for e in Tokenizer.from_file(out_file).encode_batch(text.splitlines(keepends=True)))
        for name, values in training.items():
            print(f"training, {name}: {statistics.median(values):.1f} s, {train_memory[name]:.0f} MB, "
                  f"{sizes[name]} tokens for {len(text)} held-out characters")
    results = {"bytes": size, "threads": 2, "rounds": args.rounds, "MB/s": speeds, "median MB/s": medians, "memory MB": memory,
               "training seconds": training, "training memory MB": train_memory, "held-out tokens": sizes}
    with open(os.path.join(ROOT, "bench", "results", "tokenizers.json"), "w") as f:
        json.dump(results, f, indent=1)


if sys.argv[1:2] == ["theirs"]:
    theirs(*sys.argv[2:])
elif sys.argv[1:2] == ["train"]:
    train_theirs(*sys.argv[2:])
else:
    main()
