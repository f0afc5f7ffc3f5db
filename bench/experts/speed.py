"""Measures eight experts, two per token. Compares with a dense model with the same work per token, and with Hugging Face's
Mixtral with the same shapes and AdamW. Mixtral uses its default form of experts (grouped_mm), eager and compiled; the faster
one counts. Its eager form is slower, and batched_mm needs 22 GB. Also compares two ranks with one thread each with one process
with two threads.

speed.py [--rounds N] [--batch N]

The dense feed-forward layer is twice as wide as an expert: the same products per token. Experts have four times its
parameters, and the optimizer updates all of them. Programs run in turn. Ratios are computed within a round; the result is
their median. Writes bench/results/experts.json."""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench/results/experts.json"
LAYERS, HIDDEN, HEADS, EXPERT, EXPERTS, VOCAB, SEQUENCE = 6, 512, 8, 768, 8, 4096, 256
STEPS, WARM_UP, THREADS = 6, 2, 2
SHAPE = f"arch: llama, layers: {LAYERS}, hidden: {HIDDEN}, heads: {HEADS}, context: {SEQUENCE}, tied: true, vocab: {VOCAB}"
SPARSE = f"{SHAPE}, ffn: {EXPERT}, experts: {{count: {EXPERTS}, top_k: 2}}"
RUNS = {  # model, ranks
    "dense": (f"{SHAPE}, ffn: {2 * EXPERT}", 1),
    "experts": (SPARSE, 1),
    "expert 2": (SPARSE, 2),
}
PEERS = ("transformers", "compiled")


def megalith(folder, name, batch):
    """Returns the seconds of a step."""
    model, ranks = RUNS[name]
    home = folder / f"run-{time.monotonic_ns()}"
    (folder / "run.yaml").write_text(
        f"run: {{dir: {home}}}\nmodel: {{{model}}}\n"
        f"data: {{train: [{folder}/text.txt], tokenizer: {{train: bpe, vocab: 1000}}, sequence: {SEQUENCE}, cache: {folder}/cache}}\n"
        f"train: {{steps: {STEPS}, batch: {batch}, threads: {THREADS // ranks}, eval_every: 0, eval_batches: 1}}\n"
        f"checkpoint: {{every: never}}\nparallel: {{expert: {ranks}}}\n"
    )
    command = [str(ROOT / "build/megalith"), "train", str(folder / "run.yaml")] + (["--ranks", str(ranks)] if ranks > 1 else [])
    subprocess.run(command, check=True, capture_output=True)
    rows = [json.loads(line) for line in (home / "metrics.jsonl").read_text().splitlines()]
    return statistics.median(row["step_s"] for row in rows[WARM_UP:])


def mixtral(batch, compiled):
    """Runs in a separate process: prints the seconds of a step."""
    import torch
    from transformers import MixtralConfig, MixtralForCausalLM

    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    model = MixtralForCausalLM(MixtralConfig(
        vocab_size=VOCAB, hidden_size=HIDDEN, intermediate_size=EXPERT, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        num_key_value_heads=HEADS, max_position_embeddings=SEQUENCE, num_local_experts=EXPERTS, num_experts_per_tok=2,
        tie_word_embeddings=True, use_cache=False)).train()
    run = torch.compile(model) if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    seconds = []
    for _ in range(STEPS):
        ids = torch.randint(0, VOCAB, (batch, SEQUENCE))
        begin = time.perf_counter()
        run(input_ids=ids, labels=ids).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - begin)
    print(statistics.median(seconds[WARM_UP:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", choices=PEERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        return mixtral(arguments.batch, arguments.peer == "compiled")
    seconds = {name: [] for name in [*RUNS, *PEERS]}
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        words = "the small stone stands on a hill and nobody knows who put it there or why it is so heavy".split()
        lines = (" ".join(words[(i * k * 7 + k) % len(words)] for k in range(1, 13)) for i in range(20000))
        (folder / "text.txt").write_text("\n".join(lines))
        for number in range(arguments.rounds):
            for name in RUNS:
                seconds[name].append(megalith(folder, name, arguments.batch))
            for peer in PEERS:
                command = [sys.executable, __file__, "--peer", peer, "--batch", str(arguments.batch)]
                seconds[peer].append(float(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
            print(f"  round {number + 1}: " + ", ".join(f"{name} {all_of[-1]:.3f} s" for name, all_of in seconds.items()), flush=True)

    def ratio(ours, other):  # how many times as fast as the other one
        return statistics.median(b / a for a, b in zip(seconds[ours], seconds[other]))

    result = {
        "date": time.strftime("%Y-%m-%d"), "rounds": arguments.rounds, "seconds": seconds,
        "ratios": {"experts / dense": ratio("experts", "dense"), "experts / transformers": min(ratio("experts", peer) for peer in PEERS),
                   "expert 2 / experts": ratio("expert 2", "experts")},
        "shape": {"layers": LAYERS, "hidden": HIDDEN, "expert": EXPERT, "experts": EXPERTS, "top_k": 2,
                  "tokens": arguments.batch * SEQUENCE},
    }
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    for what, value in result["ratios"].items():
        print(f"{what}: {value:.3f}")


if __name__ == "__main__":
    main()
