"""Training runs on books, with five books held out. The studies of quality share this code. A finished run is not repeated."""

import gzip
import json
import shutil
import subprocess

SEPARATOR = "<|endoftext|>"
HELD_OUT = 5
PIECE = 60_000  # characters of each held-out book; every validation uses all of them


def split(corpus, folder, few):
    """Holds out every n-th book, so that the held-out authors are spread over the alphabet."""
    train, valid = folder / "train.txt", folder / "valid.txt"
    if not (train.exists() and valid.exists()):
        text = gzip.open(corpus / "books.txt.gz", "rt", encoding="utf-8").read()
        books = [b for b in text.split(f"\n{SEPARATOR}\n") if b.strip()]
        if few:
            books = [book[:20_000] for book in books[:10]]
        every = len(books) // HELD_OUT
        held = set(range(every // 2, len(books), every)[:HELD_OUT])
        join = f"\n{SEPARATOR}\n".join
        valid.write_text(join(books[i][len(books[i]) // 3:][:PIECE] for i in sorted(held)), encoding="utf-8")
        train.write_text(join(b for i, b in enumerate(books) if i not in held), encoding="utf-8")
    return train, valid


def data_key(megalith, corpus, folder, sequence, few=False):
    """The value of `data` in a run file: the split in `folder`, with a tokenizer of 4,096 words trained on its greater part."""
    text, held_out = split(corpus, folder, few)
    if not (folder / "tokenizer").exists():
        subprocess.run([megalith, "tokenizer", "train", "--vocab", "4096", "--out", folder / "tokenizer", text], check=True)
    return (f"{{train: {text}, valid: {held_out}, separator: '{SEPARATOR}', sequence: {sequence}, cache: {folder / 'tokens'}, "
            f"tokenizer: {folder / 'tokenizer'}}}")


def train(megalith, folder, name, yaml, *overrides):
    """Returns the metrics of each step. Starts the run, resumes it, or reads the result if it is finished."""
    path, directory = folder / f"{name}.yaml", folder / "runs" / name
    summary = directory / "summary.json"
    if path.exists() and path.read_text() != yaml:  # the settings have changed
        shutil.rmtree(directory, ignore_errors=True)
    if not (summary.exists() and json.loads(summary.read_text())["state"] == "finished"):
        path.write_text(yaml)
        subprocess.run([megalith, "train", path, f"run.dir={directory}", *overrides], check=True)
    return [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
