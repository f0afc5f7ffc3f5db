"""Does a curriculum, or token dropping, or both, reach the same loss with less? Books, one small model, several budgets.

    python3 bench/data_efficiency/study.py --megalith build/megalith --corpus DIR [--tokens 8M] [--fractions 1,0.67,0.5]
        [--seeds 1,2] [--threads 1] [--train-only] [--out runs/data_efficiency] [--smoke]

DIR holds books.txt.gz (documents separated by <|endoftext|> on a line of its own). Five books are held out. Runs that are
done are not repeated, so an interrupted study goes on. Training may share the machine with other work: the time of a run is
worked out afterwards, from how often each shape of a step came (length, tokens kept) and what a step of that shape takes on
the machine at rest, all shapes measured in turn. Writes results.json, results.md and chart.svg into --out.
"""
import argparse
import json
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from books import data_key, train  # noqa: E402

MODEL = "{arch: llama, layers: 8, hidden: 192, heads: 6, context: 256, tied: true}"  # 4.3M parameters with a vocabulary of 4,096
SEQUENCE = 256
PEAK_RATE = 0.002  # of the baseline; others have it divided by their fraction
# The recipe: how far limits go, and over which share of the budget.
CURRICULUM = "[{{metric: length, apply: truncate, from: 32, to: 256, step: 16, over: {over} tokens}}]"
CURRICULUM_SHARE = 0.7
DROPPING = "{{from: 128, to: 256, step: 16, over: {over} tokens}}"
DROPPING_SHARE = 0.7
COLOURS = {"baseline": "#555555", "curriculum": "#4477aa", "dropping": "#cc6677", "both": "#228833"}


def settings(variant, fraction, tokens, batch, files, smoke):
    """One run. The peak rate grows as the data shrink, as the reference has it."""
    budget = int(tokens * fraction)
    steps = budget // (batch * SEQUENCE)
    lines = {
        **files,
        "train": f"{{tokens: {budget}, schedule_by: tokens, batch: {batch}, "
                 f"lr: {PEAK_RATE / fraction:.6f}, min_lr: 0.0001, warmup: {max(2, steps // 20)}, "
                 f"eval_every: {max(1, steps // (2 if smoke else 20))}, eval_batches: {4 if smoke else 24}, log_every: 1000000}}",
        "checkpoint": "{every: 200, keep: 1}",  # an interrupted run goes on
    }
    if variant in ("curriculum", "both"):
        lines["curriculum"] = CURRICULUM.format(over=int(CURRICULUM_SHARE * budget))
    if variant in ("dropping", "both"):
        lines["token_dropping"] = DROPPING.format(over=int(DROPPING_SHARE * budget))
    return "".join(f"{key}: {value}\n" for key, value in lines.items())


def shape_of(row):
    length = row.get("length", SEQUENCE)
    return length, min(row.get("kept", length), length)


def clock(megalith, folder, files, batch, shapes, rounds=2):
    """Seconds a step of every shape takes: the median of a few steps, all shapes in turn."""
    taken = {shape: [] for shape in shapes}
    for turn in range(rounds):
        for length, kept in shapes:
            dropping = f"token_dropping: {{from: {kept}, to: {kept}, step: 1, over: 1 steps}}\n" if kept < length else ""
            yaml = ("".join(f"{key}: {value}\n" for key, value in files.items()).replace(f"sequence: {SEQUENCE}", f"sequence: {length}")
                    + dropping + f"train: {{steps: 9, batch: {batch}, log_every: 1000000}}\ncheckpoint: {{every: never}}\n")
            rows = train(megalith, folder, f"clock-{length}-{kept}-{turn}", yaml)
            taken[length, kept] += [row["step_s"] for row in rows[3:]]
    return {shape: statistics.median(seconds) for shape, seconds in taken.items()}


def outcome(rows, seconds_of):
    seconds, curve = 0.0, []
    for row in rows:
        seconds += seconds_of[shape_of(row)]
        if "valid_loss" in row:
            curve.append({"tokens": row["tokens"], "seconds": seconds, "valid_loss": row["valid_loss"]})
    return {"steps": len(rows), "tokens": rows[-1]["tokens"], "layer_tokens": rows[-1].get("layer_tokens", rows[-1]["tokens"]),
            "seconds": seconds, "valid_loss": rows[-1]["valid_loss"], "curve": curve}


def reached(curve, loss, what):
    """How much of tokens or seconds a run needed to get to a loss; None if it never did."""
    return next((point[what] for point in curve if point["valid_loss"] <= loss), None)


def table(results, fractions):
    base = results["baseline"]["1"]
    goal, tokens, seconds = (statistics.mean(r[k] for r in base) for k in ("valid_loss", "tokens", "seconds"))
    text = "| run | data | validation loss, mean (each seed) | against baseline | tokens | layer-tokens | time |\n|---|---|---|---|---|---|---|\n"
    for variant, by_fraction in results.items():
        for fraction in fractions:
            runs = by_fraction.get(fraction)
            if not runs:
                continue
            losses = [r["valid_loss"] for r in runs]
            mean = lambda key: statistics.mean(r[key] for r in runs)
            text += (f"| {variant} | {float(fraction):.0%} | {statistics.mean(losses):.4f} ({', '.join(f'{x:.4f}' for x in losses)}) | "
                     f"{statistics.mean(losses) - goal:+.4f} | {mean('tokens') / tokens:.2f}× | {mean('layer_tokens') / tokens:.2f}× | "
                     f"{mean('seconds') / seconds:.2f}× |\n")
    return f"Baseline: validation loss {goal:.4f} after {tokens / 1e6:.2f}M tokens, {seconds:.0f} s.\n\n{text}"


def chart(results, what, title, offset):
    """Validation loss against tokens or seconds, the first seed of every run."""
    curves = [(v, f, runs[0]["curve"]) for v, by in results.items() for f, runs in by.items() if runs[0]["curve"]]
    right = max(p[what] for _, _, c in curves for p in c)
    losses = [p["valid_loss"] for _, _, c in curves for p in c[len(c) // 4:]]
    low, high = min(losses), max(losses)
    svg = f'<g transform="translate(0,{offset})"><text x="60" y="16">validation loss against {title}</text>'
    for variant, fraction, curve in curves:
        points = " ".join(f"{60 + 620 * p[what] / right:.1f},{30 + 220 * (high - min(p['valid_loss'], high)) / max(high - low, 1e-9):.1f}" for p in curve)
        dash = {"1": "", "0.67": ' stroke-dasharray="6 3"'}.get(fraction, ' stroke-dasharray="2 3"')
        svg += f'<polyline points="{points}" fill="none" stroke="{COLOURS[variant]}" stroke-width="1.6"{dash}><title>{variant} {fraction}</title></polyline>'
    svg += f'<text x="4" y="36">{high:.2f}</text><text x="4" y="252">{low:.2f}</text><text x="680" y="268" text-anchor="end">{right:.3g}</text>'
    return svg + "</g>"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--megalith", default="build/megalith", type=pathlib.Path)
    parser.add_argument("--corpus", required=True, type=pathlib.Path)
    parser.add_argument("--out", default="runs/data_efficiency", type=pathlib.Path)
    parser.add_argument("--tokens", default="8M")
    parser.add_argument("--fractions", default="1,0.67,0.5")
    parser.add_argument("--seeds", default="1,2")
    parser.add_argument("--variants", default="baseline,curriculum,dropping,both")
    parser.add_argument("--batch", default=16, type=int)
    parser.add_argument("--threads", default="auto", help="of the runs; times are always taken with all")
    parser.add_argument("--train-only", action="store_true", help="make the runs, leave times and tables to a later call")
    parser.add_argument("--smoke", action="store_true", help="pieces of ten books, 16,000 tokens, batches of 4: does it run")
    args = parser.parse_args()
    tokens = 16_000 if args.smoke else int(float(args.tokens.rstrip("M")) * 1e6)
    batch = 4 if args.smoke else args.batch
    folder = args.out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    megalith = args.megalith.resolve()
    files = {"model": MODEL, "data": data_key(megalith, args.corpus, folder, SEQUENCE, args.smoke)}
    rows = {}
    for variant in args.variants.split(","):
        for fraction in args.fractions.split(",") if variant != "baseline" else dict.fromkeys(["1", *args.fractions.split(",")]):
            for seed in args.seeds.split(","):
                yaml = settings(variant, float(fraction), tokens, batch, files, args.smoke)
                rows[variant, fraction, seed] = train(megalith, folder, f"{variant}-{fraction}-{seed}", yaml, f"run.seed={seed}",
                                                      f"train.threads={args.threads}")
    if args.train_only:
        return
    shapes = sorted({shape_of(row) for run in rows.values() for row in run})
    seconds_of = clock(megalith, folder, files, batch, shapes)
    results = {}
    for (variant, fraction, seed), run in rows.items():
        results.setdefault(variant, {}).setdefault(fraction, []).append(outcome(run, seconds_of))
    (folder / "results.json").write_text(json.dumps(results))
    text = table(results, args.fractions.split(","))
    (folder / "results.md").write_text(text)
    legend = "".join(f'<text x="{60 + 130 * i}" y="590" fill="{c}">{v}</text>' for i, (v, c) in enumerate(COLOURS.items()))
    (folder / "chart.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 600" font-family="sans-serif" font-size="12">'
                                      + chart(results, "tokens", "tokens", 0) + chart(results, "seconds", "seconds of training", 290)
                                      + legend + "</svg>\n")
    print(text)


if __name__ == "__main__":
    main()
