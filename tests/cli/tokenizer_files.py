"""Uses every kind of tokenizer file in a whole run: train, resume with the stored copy, generate, export.
tokenizer_files.py BINARY"""

import base64
import json
import os
import pathlib
import shutil

from support import run_cases, skip

CORPUS = pathlib.Path(
    os.environ.get("MEGALITH_CORPUS", pathlib.Path(__file__).resolve().parents[3] / "shared/corpus")
)
if not (CORPUS / "sentencepiece_test_unigram1k.model").exists():
    skip("the tokenizers of ../shared/corpus (or the folder MEGALITH_CORPUS) are not at hand")


def whole_way(space, tokenizer, arch="gpt2"):
    space.yaml(
        "run",
        arch,
        data=f"{{train: text.txt, tokenizer: {tokenizer}, sequence: 16}}",
        train="{steps: 2, batch: 4, eval_every: 0}",
    )
    space.train("run")
    space.train("run", "train.steps=3")
    said = space.run("--json", "generate", "runs/run", "--prompt", "Ba", "--tokens", 5).json
    space.run("export", "runs/run", "--out", "out")
    again = space.run("--json", "generate", "out", "--prompt", "Ba", "--tokens", 5).json
    assert said["text"] == again["text"] and said["text"].startswith("Ba"), (said, again)
    return repr(said["text"])


def sentencepiece(space):
    return whole_way(space, CORPUS / "sentencepiece_test_unigram1k.model", "llama")


def gpt2_pair(space):
    (space / "pair").mkdir()
    shutil.copy(CORPUS / "gpt2_encoder.json", space / "pair/encoder.json")
    shutil.copy(CORPUS / "gpt2_vocab.bpe", space / "pair/vocab.bpe")
    return whole_way(space, "pair")


def wordpiece(space):
    shutil.copy(CORPUS / "bert_uncased_vocab.txt", space / "vocab.txt")
    space.yaml(
        "run",
        "bert",
        objective="masked",
        data="{train: text.txt, tokenizer: vocab.txt, sequence: 16}",
        train="{steps: 2, batch: 4, eval_every: 0}",
    )
    space.train("run")
    space.run("export", "runs/run", "--out", "out")
    assert json.loads((space / "out/config.json").read_text())["vocab_size"] == 30522
    return "trained, exported"


def tiktoken_ranks(space):
    # GPT-2's bytes in the order of their ids, as a rank file has them.
    vocabulary = json.loads((CORPUS / "gpt2_encoder.json").read_text())
    alphabet = {}
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    for byte in range(256):
        alphabet[chr(byte if byte in printable else 256 + sum(b not in printable for b in range(byte)))] = byte
    lines = []
    for piece, rank in sorted(vocabulary.items(), key=lambda item: item[1]):
        if piece == "<|endoftext|>":
            continue
        lines.append(base64.b64encode(bytes(alphabet[c] for c in piece)).decode() + f" {rank}")
    space.write("gpt2.tiktoken", "\n".join(lines) + "\n")
    return whole_way(space, "gpt2.tiktoken")


run_cases([sentencepiece, gpt2_pair, wordpiece, tiktoken_ranks])
