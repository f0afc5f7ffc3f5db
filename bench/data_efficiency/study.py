"""Does a curriculum, token dropping, or both reach the same loss with less data? Books, one small model, several budgets.

    python3 bench/data_efficiency/study.py --corpus DIR [--megalith build/megalith] [--tokens 3M] [--seeds 1,2] [--jobs 2]
        [--folder runs/data_efficiency] [--runs both-1,curriculum-0.5] [--clock | --smoke]

DIR holds books.txt.gz (documents separated by <|endoftext|> on a line of its own). Five books are held out, and losses
are measured on a piece of each. A finished run leaves a file under bench/results/data_efficiency/3M (or the value of --tokens)
and is not repeated. An interrupted run resumes. --runs starts only the named runs, in this order. Training may share the
machine with other work. On an idle machine, --clock measures every shape of a step (sequences, length, tokens kept) of all
runs, in turns. The time of a run follows from the number of steps with each shape. bench/write_docs.py writes tables and
charts.
"""
import argparse
import concurrent.futures
import json
import pathlib
import statistics
import sys

BENCH = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(BENCH))
from books import data_key, train  # noqa: E402
from recipe import MODEL, RESULTS, SEQUENCE, VARIANTS, settings  # noqa: E402


def written(keys):
    return "".join(f"{key}: {value}\n" for key, value in keys.items())


def digest(rows):
    """Returns the curve of a run, with the number of steps of each shape (sequences, length, tokens kept) up to each point."""
    made, curve, before = {}, [], 0
    for row in rows:
        length = row.get("length", SEQUENCE)
        shape = ((row["tokens"] - before) // length, length, min(row.get("kept", length), length))
        made[shape] = made.get(shape, 0) + 1
        before = row["tokens"]
        if "valid_loss" in row:
            curve.append({"tokens": row["tokens"], "layer_tokens": row.get("layer_tokens", row["tokens"]),
                          "valid_loss": row["valid_loss"], "steps": [[*shape, count] for shape, count in sorted(made.items())]})
    return curve


def one_run(megalith, folder, results, data, name, keys, seed, threads):
    """Starts a run, unless there is a result with the same settings."""
    result = results / f"{name}.json"
    if result.exists() and json.loads(result.read_text())["settings"] == keys:
        return
    yaml = written({"data": data, **keys, "checkpoint": "{every: 200, keep: 1}"})
    rows = train(megalith, folder, name, yaml, f"run.seed={seed}", f"train.threads={threads}", "train.log_every=1000000")
    result.write_text(json.dumps({"settings": keys, "curve": digest(rows)}) + "\n")
    print(f"{name}: validation loss {rows[-1]['valid_loss']:.4f}", flush=True)


def take_times(megalith, folder, data, rounds=2):
    """Seconds per step for every shape: the median of a few steps, all shapes in turn."""
    runs = [json.loads(path.read_text()) for path in RESULTS.glob("*/*.json")]
    shapes = sorted({tuple(shape) for run in runs for *shape, _ in run["curve"][-1]["steps"]})
    taken = {shape: [] for shape in shapes}
    for turn in range(rounds):
        for sequences, length, kept in shapes:
            keys = {"model": MODEL, "data": data.replace(f"sequence: {SEQUENCE}", f"sequence: {length}"),
                    "train": f"{{steps: 7, batch: {sequences}, log_every: 1000000, eval_every: 0}}",
                    "checkpoint": "{every: never}"}
            if kept < length:
                keys["token_dropping"] = f"{{from: {kept}, to: {kept}, step: 1, over: 1 steps}}"
            rows = train(megalith, folder, f"clock-{sequences}-{length}-{kept}-{turn}", written(keys))
            taken[sequences, length, kept] += [row["step_s"] for row in rows[2:]]
    times = [[*shape, statistics.median(seconds)] for shape, seconds in taken.items()]
    (RESULTS / "times.json").write_text(json.dumps(times) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megalith", default=BENCH.parent / "build/megalith", type=pathlib.Path)
    parser.add_argument("--corpus", required=True, type=pathlib.Path)
    parser.add_argument("--folder", default=BENCH.parent / "runs/data_efficiency", type=pathlib.Path)
    parser.add_argument("--tokens", default="3M")
    parser.add_argument("--seeds", default="1,2")
    parser.add_argument("--runs", help="variants and shares of the data, such as both-1,curriculum-0.5; default: all")
    parser.add_argument("--jobs", default=2, type=int, help="parallel runs, one thread each")
    parser.add_argument("--clock", action="store_true", help="take times")
    parser.add_argument("--smoke", action="store_true", help="a quick test: pieces of ten books, 16,000 tokens, two small runs")
    args = parser.parse_args()
    folder, megalith = args.folder.resolve(), args.megalith.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    data = data_key(megalith, args.corpus, folder, SEQUENCE, args.smoke)
    if args.smoke:
        for variant in ("baseline", "both"):
            yaml = written({"data": data, **settings(variant, 1.0, 16_000)})
            assert digest(train(megalith, folder, f"smoke-{variant}", yaml))[-1]["valid_loss"] > 0
        return
    if args.clock:
        return take_times(megalith, folder, data)
    results, runs = RESULTS / args.tokens, folder / args.tokens
    results.mkdir(parents=True, exist_ok=True)
    runs.mkdir(exist_ok=True)
    tokens = int(float(args.tokens.rstrip("M")) * 1e6)
    # First the runs that answer the question, last those that explain the effect.
    turn = ["both", "lighter", "curriculum", "dropping", "raised", "rarity", "single", "baseline"]
    every = sorted(((variant, fraction) for variant, fractions in VARIANTS.items() for fraction in fractions),
                   key=lambda it: (it != ("baseline", 1.0), turn.index(it[0]), it[1]))
    known = {f"{variant}-{fraction:g}": (variant, fraction) for variant, fraction in every}
    names = args.runs.split(",") if args.runs else list(known)
    if unknown := [name for name in names if name not in known]:
        parser.error(f"--runs: expected some of {', '.join(known)}, got {', '.join(unknown)}")
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        made = [pool.submit(one_run, megalith, runs, results, data, f"{name}-{seed}", settings(*known[name], tokens), seed, 1)
                for name in names for seed in args.seeds.split(",")]
        for run in made:
            run.result()


if __name__ == "__main__":
    main()
