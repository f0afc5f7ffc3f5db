"""Tests that a checkpoint does not depend on the layout: it is saved with one layout and resumed with another.

resume.py MEGALITH [--all]: without --all, six pairs. Losses must equal those of the first layout within 1e-3, and bit by
bit if both layouts are equal."""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from layouts import Bench, metrics  # noqa: E402

HALF, ALL = 4, 8
ONE = (1, {})
PAIRS = [
    ((2, {"zero": 1}), (2, {"zero": 1})),
    ((4, {"pipeline": 2, "zero": 3}), (2, {"tensor": 2})),
    ((2, {"tensor": 2}), ONE),
    (ONE, (4, {"pipeline": 2, "tensor": 2})),
    ((2, {"expert": 2}), (4, {"expert": 4, "zero": 1})),
    ((2, {"expert": 2}), ONE),
    ((4, {"expert": 4, "zero": 3}), (4, {"expert": 2, "pipeline": 2})),
    (ONE, (4, {"expert": 2, "tensor": 2})),
    ((2, {"expert": 2, "spill": True}), (2, {"zero": 2})),
    ((4, {"expert": 2, "zero": 2}), (4, {"expert": 2, "zero": 2})),
    (ONE, (2, {"zero": 3})),
    ((2, {}), (4, {})),
    ((4, {"zero": 2}), (2, {"context": 2})),
    ((3, {"pipeline": 3}), (2, {"pipeline": 2, "schedule": "interleaved", "interleave": 2})),
    ((4, {"context": 2, "zero": 1}), (4, {"tensor": 4})),
    ((8, {"pipeline": 2, "tensor": 2, "zero": 3}), (3, {"pipeline": 3})),
    ((2, {"zero": 3, "spill": True}), (2, {"zero": 1})),
    ((2, {"tensor": 2}), (2, {"zero": 2, "spill": True})),
    ((4, {"pipeline": 2, "zero": 2}), (4, {"pipeline": 2, "zero": 2})),
]


def losses(run):
    return [m["loss"] for m in metrics(run)]


def name(layout):
    ranks, settings = layout
    return f"{ranks} " + (", ".join(f"{k} {v}" for k, v in settings.items()) or ("rank" if ranks == 1 else "data"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    failed = 0
    pairs = PAIRS if arguments.all else PAIRS[:6]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments.program, Path(folder))
        straight = {}
        for number, (first, second) in enumerate(pairs):
            spills = "spill" in first[1] or "spill" in second[1]
            sparse = "expert" in first[1] or "expert" in second[1]
            model = ("wide experts" if spills else "experts") if sparse else ("wide gpt2" if spills else "gpt2")
            key = json.dumps([model, first])
            if key not in straight:
                straight[key] = losses(bench.train(f"straight-{number}", first[0], model, steps=ALL, every=HALF, **first[1]))
            run = bench.train(f"pair-{number}", first[0], model, steps=HALF, every=HALF, **first[1])
            run = bench.train(f"pair-{number}", second[0], model, steps=ALL, every=HALF, **second[1])
            got, wanted = losses(run), straight[key]
            same = first == second
            worst = max(abs(a - b) / a for a, b in zip(wanted, got))
            good = len(got) == ALL and (got == wanted if same else worst <= 1e-3)
            failed += not good
            print(f"{name(first)} -> {name(second)}: {worst:.1e}{' bit for bit' if got == wanted else ''}: {'ok' if good else 'NOT WITHIN'}", flush=True)
            shutil.rmtree(run)
    if failed:
        sys.exit(f"{failed} of {len(pairs)} pairs do not continue as they should")
    print(f"{len(pairs)} passed, 0 failed")


if __name__ == "__main__":
    main()
