"""What a step costs with half of the tokens dropped in all middle layers, against without, in one run.

    python3 bench/data_efficiency/dropping_cost.py --megalith build/megalith --text FILE --tokenizer tokenizer.json
        [--preset gpt2-124m] [--sequence 1024] [--batch 1] [--steps 8]
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--megalith", default="build/megalith", type=pathlib.Path)
    parser.add_argument("--text", required=True, type=pathlib.Path)
    parser.add_argument("--tokenizer", required=True, type=pathlib.Path)
    parser.add_argument("--preset", default="gpt2-124m")
    parser.add_argument("--sequence", default=1024, type=int)
    parser.add_argument("--batch", default=1, type=int)
    parser.add_argument("--steps", default=8, type=int, help="of each kind")
    args = parser.parse_args()
    half = args.sequence // 2
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder) / "run.yaml"
        # The pace goes from half to all at once: the first steps drop, the others do not.
        run.write_text(f"model: {{preset: {args.preset}}}\n"
                       f"data: {{train: {args.text.resolve()}, tokenizer: {args.tokenizer.resolve()}, sequence: {args.sequence}, valid_fraction: 0}}\n"
                       f"token_dropping: {{from: {half}, to: {args.sequence}, step: {half}, over: {args.steps + 1} steps}}\n"
                       f"train: {{steps: {2 * args.steps + 1}, batch: {args.batch}, log_every: 1000000}}\n"
                       f"checkpoint: {{every: never}}\nrun: {{dir: {folder}/out}}\n")
        subprocess.run([args.megalith, "train", run], check=True, stdout=subprocess.DEVNULL)
        rows = [json.loads(line) for line in (pathlib.Path(folder) / "out/metrics.jsonl").read_text().splitlines()]
    seconds = {kept: [r["step_s"] for r in rows[1:] if r["kept"] == kept] for kept in (half, args.sequence)}  # the first warms up
    dropped, whole = (statistics.median(s) for s in seconds.values())
    print(json.dumps({"dropped_s": dropped, "whole_s": whole, "ratio": dropped / whole,
                      "best_ratio": min(seconds[half]) / min(seconds[args.sequence])}))


main()
