"""Do experts learn more from the same compute? Compares eight experts, two per token, with a dense model whose feed-forward
layer is as wide as two experts: the same multiply-adds per token, the same data, several seeds.

    python3 bench/experts/quality.py --corpus DIR [--megalith build/megalith] [--tokens 3M] [--seeds 1,2] [--jobs 2]
        [--folder runs/experts_quality] [--smoke]

DIR contains books.txt.gz. Interrupted runs resume. Writes bench/results/experts_quality.json: curves of validation loss, and the
load of the busiest expert divided by the mean, in the worst layer, after the warm-up."""

import argparse
import concurrent.futures
import json
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from books import data_key, train  # noqa: E402

SEQUENCE, BATCH, EXPERT = 128, 8, 256  # with twice as many tokens per step, the model learns less from the same tokens
SHAPE = f"arch: llama, layers: 6, hidden: 192, heads: 6, context: {SEQUENCE}, tied: true"
MODELS = {
    "dense": f"{{{SHAPE}, ffn: {2 * EXPERT}}}",
    "experts": f"{{{SHAPE}, ffn: {EXPERT}, experts: {{count: 8, top_k: 2}}}}",
}


def settings(model, data, tokens, smoke):
    steps = tokens // (BATCH * SEQUENCE)
    return (f"model: {MODELS[model]}\ndata: {data}\ncheckpoint: {{every: 200, keep: 1}}\n"
            f"train: {{steps: {steps}, batch: {BATCH}, lr: 0.001, min_lr: 0.0001, warmup: {max(1, steps // 20)}, "
            f"eval_every: {max(1, steps // (2 if smoke else 12))}, eval_batches: 0, log_every: 1000000}}\n")


def evenness(rows):
    """Tokens of the busiest expert divided by the mean, in the worst layer, in the second half of the run."""
    told = [row["experts"]["layers"] for row in rows[len(rows) // 2:] if "layers" in row.get("experts", {})]
    if not told:
        return None
    layers = [[statistics.mean(loads) for loads in zip(*(record[i]["load"] for record in told))] for i in range(len(told[0]))]
    return max(max(layer) for layer in layers)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megalith", default=ROOT / "build/megalith", type=Path)
    parser.add_argument("--corpus", required=True, type=Path)
    parser.add_argument("--folder", default=ROOT / "runs/experts_quality", type=Path)
    parser.add_argument("--tokens", default="3M")
    parser.add_argument("--seeds", default="1,2")
    parser.add_argument("--jobs", default=2, type=int, help="parallel runs, one thread each")
    parser.add_argument("--smoke", action="store_true", help="pieces of ten books, 16,000 tokens; writes no result")
    args = parser.parse_args()
    tokens = 16_000 if args.smoke else int(float(args.tokens.rstrip("M")) * 1e6)
    folder, megalith = args.folder.resolve(), args.megalith.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    data = data_key(megalith, args.corpus, folder, SEQUENCE, args.smoke)
    result = {"tokens": tokens, "runs": {}}

    def one_run(model, seed):
        rows = train(megalith, folder, f"{model}-{seed}", settings(model, data, tokens, args.smoke), f"run.seed={seed}",
                     "train.threads=1")
        curve = [{"tokens": r["tokens"], "valid_loss": r["valid_loss"]} for r in rows if "valid_loss" in r]
        run = {"seed": seed, "valid_loss": curve[-1]["valid_loss"], "curve": curve, "evenness": evenness(rows)}
        print(f"{model}, seed {seed}: validation loss {run['valid_loss']:.4f}, busiest expert {run['evenness']}", flush=True)
        return run

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        runs = {model: [pool.submit(one_run, model, seed) for seed in args.seeds.split(",")] for model in MODELS}
        for model, of_model in runs.items():
            result["runs"][model] = [run.result() for run in of_model]
    if not args.smoke:
        (ROOT / "bench/results/experts_quality.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
