"""Eight experts, two a token, against a dense model of as much work a token, and against Hugging Face's Mixtral with the
same shapes and AdamW: tokens a second, medians of interleaved rounds.  speed.py MEGALITH [--threads N] [--rounds N]

Beside them the same experts spread over two ranks (parallel.expert 2), which share the threads.

The dense feed-forward layer is twice as wide as an expert: the same products a token. Experts have four times its
parameters, all of which the optimizer updates."""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LAYERS, HIDDEN, HEADS, EXPERT, EXPERTS, VOCAB, SEQUENCE = 6, 512, 8, 768, 8, 4096, 256
STEPS = 6


def yaml(folder, name, sparse, batch, threads):
    model = f"arch: llama, layers: {LAYERS}, hidden: {HIDDEN}, heads: {HEADS}, context: {SEQUENCE}, tied: true, vocab: {VOCAB}"
    model += f", ffn: {EXPERT}, experts: {{count: {EXPERTS}, top_k: 2}}" if sparse else f", ffn: {2 * EXPERT}"
    (folder / f"{name}.yaml").write_text(
        f"run: {{dir: {folder}/{name}}}\nmodel: {{{model}}}\n"
        f"data: {{train: [{folder}/text.txt], tokenizer: {{train: bpe, vocab: 1000}}, sequence: {SEQUENCE}, cache: {folder}/cache}}\n"
        f"train: {{steps: {STEPS}, batch: {batch}, threads: {threads}, eval_every: 0, eval_batches: 1}}\ncheckpoint: {{every: never}}\n"
    )


def ours(program, folder, name, *more):
    subprocess.run(["rm", "-rf", str(folder / name)], check=True)
    subprocess.run([program, "train", str(folder / f"{name}.yaml"), *more], check=True, capture_output=True)
    rows = [json.loads(line) for line in (folder / name / "metrics.jsonl").read_text().splitlines()]
    return statistics.median(row["tokens_per_s"] for row in rows[2:])


def mixtral(batch, threads):
    """In a process of its own: prints tokens a second."""
    import torch
    from transformers import MixtralConfig, MixtralForCausalLM

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = MixtralForCausalLM(MixtralConfig(
        vocab_size=VOCAB, hidden_size=HIDDEN, intermediate_size=EXPERT, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        num_key_value_heads=HEADS, max_position_embeddings=SEQUENCE, num_local_experts=EXPERTS, num_experts_per_tok=2,
        tie_word_embeddings=True, use_cache=False)).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    seconds = []
    for _ in range(STEPS):
        ids = torch.randint(0, VOCAB, (batch, SEQUENCE))
        begin = time.perf_counter()
        model(input_ids=ids, labels=ids).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - begin)
    print(batch * SEQUENCE / statistics.median(seconds[2:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.peer:
        return mixtral(a.batch, a.threads)
    speeds = {"dense": [], "experts": [], "spread": [], "transformers": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = "the small stone stands on a hill and nobody knows who put it there or why it is so heavy".split()
        lines = (" ".join(words[(i * k * 7 + k) % len(words)] for k in range(1, 13)) for i in range(20000))
        (folder / "text.txt").write_text("\n".join(lines))
        yaml(folder, "dense", False, a.batch, a.threads)
        yaml(folder, "experts", True, a.batch, a.threads)
        yaml(folder, "spread", True, a.batch, max(1, a.threads // 2))
        for _ in range(a.rounds):
            for kind in ("dense", "experts"):
                speeds[kind].append(ours(a.program, folder, kind))
            speeds["spread"].append(ours(a.program, folder, "spread", "--ranks", "2", "parallel.expert=2"))
            command = [sys.executable, __file__, a.program, "--peer", "--threads", str(a.threads), "--batch", str(a.batch)]
            speeds["transformers"].append(float(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    medians = {kind: statistics.median(values) for kind, values in speeds.items()}
    result = {
        "tokens_per_s": medians, "all": speeds, "experts_to_dense": medians["experts"] / medians["dense"],
        "experts_to_transformers": medians["experts"] / medians["transformers"],
        "spread_to_experts": medians["spread"] / medians["experts"],
        "shape": {"layers": LAYERS, "hidden": HIDDEN, "expert": EXPERT, "experts": EXPERTS, "top_k": 2, "tokens": a.batch * SEQUENCE,
                  "threads": a.threads},
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
