"""Compares a step of contrastive training with sentence-transformers: 4,096 pairs of 32 tokens, an encoder as large as MiniLM
(6 layers, hidden 384), float32, our memory limited to 1 GiB. sentence-transformers uses its cached loss with our micro-batch.
Both start from the same random weights, and their losses and gradients are compared first, on a small batch. Steps alternate.
embeddings.py [--pairs 4096] [--rounds 3]"""

import argparse
import json
import pathlib
import random
import statistics
import subprocess
import tempfile
import time

import torch
import transformers
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer, models
from sentence_transformers.losses import CachedMultipleNegativesRankingLoss, MultipleNegativesRankingLoss

ROOT = pathlib.Path(__file__).resolve().parents[1]
MEGALITH = ROOT / "build/megalith"
TOKENS = 32


def make_model(folder):
    """A tokenizer of single words, and random weights. Dropout is off, so that both programs compute the same."""
    words = [f"w{i}" for i in range(30000)]
    vocab = folder / "vocab.txt"
    vocab.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]) + "\n")
    tokenizer = transformers.BertTokenizer(vocab=str(vocab))
    torch.manual_seed(1)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536,
        max_position_embeddings=512, hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    transformers.BertModel(config, add_pooling_layer=False).save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    transformer = models.Transformer(str(folder / "model"), max_seq_length=TOKENS)
    pooling = models.Pooling(384, pooling_mode="mean")
    return words, SentenceTransformer(modules=[transformer, pooling], device="cpu")


def write_pairs(folder, words, count):
    chance = random.Random(2)
    texts = [" ".join(chance.choices(words, k=TOKENS - 2)) for _ in range(2 * count)]
    rows = [{"anchor": a, "positive": b} for a, b in zip(texts[::2], texts[1::2])]
    (folder / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return rows


def ours(folder, name, pairs, micro, optimizer, memory="1GiB"):
    """Trains one step. Returns loss, seconds, peak bytes, and the run directory."""
    run = folder / name
    (folder / f"{name}.yaml").write_text(f"""
model: {{from: {folder}/model}}
objective: {{kind: contrastive, pairs: columns}}
data: {{train: {folder}/pairs.jsonl, tokenizer: {folder}/model, sequence: {TOKENS}, valid_fraction: 0, cache: {folder}/cache}}
train: {{steps: 1, batch: {pairs}, micro_batch: {micro}, eval_every: 0, {optimizer}}}
memory: {{ram: {memory}}}
run: {{dir: {run}}}
""")
    subprocess.run([MEGALITH, "train", folder / f"{name}.yaml"], check=True, capture_output=True)
    step = json.loads((run / "metrics.jsonl").read_text().splitlines()[0])
    return step["loss"], step["step_s"], step["mem_peak_bytes"], run


def features(model, rows, batch):
    return [model.preprocess([rows[i][column] for i in batch]) for column in ("anchor", "positive")]


def agreement(folder, model, rows):
    """Returns the largest difference of loss and of any gradient from both losses of sentence-transformers."""
    pairs = len(rows)
    loss, _, _, run = ours(folder, "small", pairs, 16, "optimizer: sgd, momentum: 0, lr: 0.5, decay: constant, weight_decay: 0, clip: 0")
    before = load_file(folder / "model/model.safetensors")
    [after] = (load_file(path / "model.safetensors") for path in (run / "checkpoints").iterdir())
    found = {}
    for name, make in {"plain": MultipleNegativesRankingLoss, "cached": lambda m: CachedMultipleNegativesRankingLoss(m, mini_batch_size=16)}.items():
        model.zero_grad()
        theirs = make(model)(features(model, rows, range(pairs)), None)
        theirs.backward()
        worst = 0
        for parameter, value in model[0].auto_model.named_parameters():
            if value.grad is None:  # the pooler, which the loss does not use
                continue
            stored = next(n for n in (parameter, "bert." + parameter) if n in before)
            gradient = (before[stored] - after["bert." + parameter]) / 0.5
            worst = max(worst, (gradient - value.grad).abs().max().item())
        found[name] = {"loss": abs(loss - theirs.item()), "gradient": worst}
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="megalith-bench-") as root:
        folder = pathlib.Path(root)
        words, model = make_model(folder)
        rows = write_pairs(folder, words, 64)
        same = agreement(folder, model, rows)
        print(f"differences from sentence-transformers: {same}", flush=True)
        rows = write_pairs(folder, words, arguments.pairs)
        micro = 128
        loss = CachedMultipleNegativesRankingLoss(model, mini_batch_size=micro)
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
        whole = features(model, rows, range(arguments.pairs))
        rounds = []
        for number in range(arguments.rounds):
            our_loss, our_s, peak, _ = ours(folder, f"run{number}", arguments.pairs, micro, "lr: 0.00002, decay: constant")
            began = time.perf_counter()
            optimizer.zero_grad()
            theirs = loss(whole, None)
            theirs.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            their_s = time.perf_counter() - began
            rounds.append({"megalith_s": our_s, "sentence_transformers_s": their_s, "peak_bytes": peak,
                           "loss": our_loss, "their_loss": theirs.item()})
            print(f"round {number}: ours {our_s:.1f} s, theirs {their_s:.1f} s, peak {peak / 2**20:.0f} MiB", flush=True)
    ratio = statistics.median(r["sentence_transformers_s"] / r["megalith_s"] for r in rounds)
    print(f"median ratio {ratio:.2f}")
    result = {"pairs": arguments.pairs, "tokens": TOKENS, "micro_batch": micro, "rounds": rounds, "ratio": ratio, "agreement": same}
    (ROOT / "bench/results/embeddings.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
