"""Tables and charts of the study, one of each for every budget, from the files of study.py in bench/results/data_efficiency."""

import json
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import loss_chart  # noqa: E402
from recipe import BATCH, RESULTS, SEQUENCE, VARIANTS  # noqa: E402

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
COLOURS = {"baseline": "#555555", "curriculum": "#4477aa", "dropping": "#cc6677", "both": "#228833", "lighter": "#66ccee",
           "rarity": "#ee7733", "raised": "#aa8800", "single": "#aa3377"}
DASHES = {1.0: "", 0.67: "7 3", 0.5: "2 3"}


def results(budget):
    """Returns {(variant, fraction): curves by seed}, for seeds with a finished baseline. Points have tokens, valid_loss and, if
    times were measured, seconds."""
    times_file, found = RESULTS / "times.json", {}
    times = {tuple(shape): s for *shape, s in json.loads(times_file.read_text())} if times_file.exists() else {}
    for variant, fractions in VARIANTS.items():
        for fraction in fractions:
            for path in sorted(budget.glob(f"{variant}-{fraction:g}-*.json")):
                seed = path.stem.rsplit("-", 1)[1]
                if not (budget / f"baseline-1-{seed}.json").exists():
                    continue
                curve = json.loads(path.read_text())["curve"]
                for point in curve:
                    shapes = point.pop("steps")
                    if all(tuple(shape) in times for *shape, _ in shapes):
                        point["seconds"] = sum(count * times[tuple(shape)] for *shape, count in shapes)
                found.setdefault((variant, fraction), {})[seed] = curve
    return found


def needed(curve, loss, what):
    """Tokens or seconds until a run reached a loss, interpolated between two points; None if it did not."""
    for before, after in zip([None, *curve], curve):
        if after["valid_loss"] <= loss:
            if before is None:
                return after[what]
            share = (before["valid_loss"] - loss) / (before["valid_loss"] - after["valid_loss"])
            return before[what] + share * (after[what] - before[what])
    return None


def mean_of(curves, what):
    """Mean of the last points of all curves."""
    return statistics.mean(curve[-1][what] for curve in curves.values())


def timed(found):
    return all("seconds" in curve[-1] for curves in found.values() for curve in curves.values())


def rows(found):
    base = found["baseline", 1.0]
    goal = {seed: curve[-1]["valid_loss"] for seed, curve in base.items()}
    for (variant, fraction), curves in found.items():
        losses = {seed: curve[-1]["valid_loss"] for seed, curve in curves.items()}
        cells = [variant, f"{fraction:.0%}", ", ".join(f"{loss:.4f}" for loss in losses.values()),
                 ", ".join(f"{loss - goal[seed]:+.4f}" for seed, loss in losses.items()),
                 f"{mean_of(curves, 'layer_tokens') / mean_of(base, 'tokens'):.2f}"]
        for what in ("tokens", "seconds") if timed(found) else ("tokens",):
            cells.append(f"{mean_of(curves, what) / mean_of(base, what):.2f}")
            reached = [needed(curve, goal[seed], what) for seed, curve in curves.items()]
            cells.append(", ".join("–" if at is None else f"{at / mean_of(base, what):.2f}" for at in reached))
        yield cells


def header(found):
    return ["run", "data", "validation loss, each seed", "against the baseline", "layer-tokens", "tokens", "until the baseline's loss",
            *(["time", "until the baseline's loss"] if timed(found) else [])]


def drawn(variant, fraction):
    """Chooses the curves for the question: which runs reach the final loss of the baseline with less?"""
    return (fraction < 1) != (variant == "baseline") and variant != "raised"


def panel(found, what, title, offset):
    """Chart of validation loss by tokens or seconds, mean of the seeds."""
    lines = [(f"{variant}, {fraction:.0%} of the data", COLOURS[variant], DASHES[fraction],
              [(statistics.mean(p[what] for p in at), statistics.mean(p["valid_loss"] for p in at)) for at in zip(*seeds.values())])
             for (variant, fraction), seeds in found.items() if drawn(variant, fraction)]
    return loss_chart.panel(lines, title, offset, goal=mean_of(found["baseline", 1.0], "valid_loss"))


def draw(found, image):
    panels = [panel(found, "tokens", "tokens", 0)]
    if timed(found):
        panels.append(panel(found, "seconds", "seconds of training", loss_chart.PANEL))
    shown = [(variant, colour) for variant, colour in COLOURS.items() if any(drawn(*key) for key in found if key[0] == variant)]
    loss_chart.draw(image, panels, shown, "solid 100% of the data, dashed 67%, dotted 50%; mean of the seeds")


def part(name, found, table):
    """Table and chart of one budget."""
    base, image = found["baseline", 1.0], f"data_efficiency_{name}.svg"
    draw(found, IMAGES / image)
    seconds = f"; the baseline trains for {mean_of(base, 'seconds'):.0f} s" if timed(found) else ""
    return (f"**A baseline of {name} tokens**, {len(base)} seed{'s' * (len(base) > 1)}{seconds}:\n\n"
            + table(header(found), list(rows(found))) + f"\n\n![validation loss, {name} tokens](images/{image})\n")


def section(table):
    """Section of docs/benchmarks.md. `table` makes a table of a header and rows. Empty until a baseline is finished."""
    budgets = {path.name: results(path) for path in RESULTS.iterdir() if path.is_dir()}
    done = {name: budgets[name] for name in sorted(budgets, key=lambda name: float(name.rstrip("M"))) if ("baseline", 1.0) in budgets[name]}
    if not done:
        return ""
    return (
        f"## Less data\nA llama with 4.2M parameters on books, with five books held out, and {BATCH} sequences of {SEQUENCE} tokens per "
        "step. The table compares a baseline with a curriculum of lengths, token dropping, and both. They use all, two thirds and "
        "half of its data. Lighter: both, with fewer dropped tokens. Rarity: the curriculum with a second one, which admits "
        "samples of common words first. Raised: both, with the peak learning rate divided by the share of the data, as in "
        "DeepSpeed's recipe. Single: the baseline with one sequence per step (bench/data_efficiency/recipe.py). Tokens, "
        "layer-tokens and time are shares of the baseline's. \"Until\" is the point where a run first reached the final "
        "validation loss of the baseline with the same seed. The recipe was chosen by losses of the first seed: curricula begin "
        "with 64 tokens per sequence if the baseline has 3M tokens, and with 128 if it has 10M. Steps have eight sequences, "
        "because with four, half of the tokens were not enough. Curricula of 3M tokens used the beginnings of samples in every "
        "epoch, those of 10M only in the first epoch. Guide: "
        "[when it helps](guides/efficiency.md#when-it-helps).\n\n"
        + "\n".join(part(name, found, table) for name, found in done.items())
    )
