#!/usr/bin/env python3
"""The campaign: attacks on the program with a fixed seed, judged by rules (rules.py). Every attack is a kind, in a file of
its own with a function `cases(setup)`; to add one, write the file and name it in KINDS.

campaign.py MEGALITH PRELOAD [--only KIND[,KIND]] [--case N] [--every N] [--workers N] [--keep] [--table PAGE]
  --case N   one case of one kind; its folder stays
  --every N  every N-th case of each kind
A failed case is repeated with --only KIND --case N."""

import argparse
import concurrent.futures
import importlib
import os
import pathlib
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cli")]

from program import Program  # noqa: E402
from rules import Failed  # noqa: E402
from table import Row, write_table  # noqa: E402

SEED = 20
KINDS = {
    "settings": "every YAML key with hostile values",
    "kills": "kill -9, SIGTERM and SIGINT at random moments, then resume, on seven layouts",
    "damage": "every file of a run damaged in six ways, then resume, eval, generate, report and verify",
    "folders": "hostile model folders, tokenizers and shards",
    "network": "the network between two hosts cut for a moment or for good, then resume",
    "clock": "the wall clock set back while a run trains",
    "together": "two or three runs in one folder at once",
    "writes": "every write, fsync, rename, … of a 5-step run fails once, and 200 drawn allocations",
}


class Skipped(Exception):
    """Raised by a kind of attack that this machine cannot run."""


@dataclass
class Case:
    name: str
    attack: Callable  # attack(folder, chance): raises Failed


class Setup:
    """The inputs of a kind: the program, a folder that all its cases read, and a seed."""

    def __init__(self, kind, program, root):
        self.kind, self.program, self.folder = kind, program, root / kind
        self.folder.mkdir()

    def chance(self, number="kind"):
        return random.Random(f"{SEED} {self.kind} {number}")


def attack(setup, number, case, keep):
    """Runs one case. Returns what went wrong, or an empty text."""
    folder = setup.folder / f"case-{number}"
    folder.mkdir()
    try:
        case.attack(folder, setup.chance(number))
    except Failed as error:
        return str(error)
    except Exception:  # a fault of the campaign is a failed case, too
        return traceback.format_exc()
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    return ""


def run_kind(kind, program, root, arguments):
    began = time.monotonic()
    setup = Setup(kind, program, root)
    cases = importlib.import_module(kind).cases(setup)
    chosen = [arguments.case] if arguments.case is not None else range(0, len(cases), arguments.every)
    failures = {}
    with concurrent.futures.ThreadPoolExecutor(arguments.workers) as workers:
        futures = {workers.submit(attack, setup, n, cases[n], arguments.keep): n for n in chosen}
        for done in concurrent.futures.as_completed(futures):
            if wrong := done.result():
                number = futures[done]
                failures[number] = wrong
                print(f"FAIL  {kind} {number} ({cases[number].name}): {wrong}\n", flush=True)
    row = Row(kind, KINDS[kind], len(chosen), len(failures), time.monotonic() - began)
    print(f"{kind}: {row.cases} cases, {row.failed} failed, {row.seconds:.0f} s", flush=True)
    return row


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("megalith")
    parser.add_argument("preload")
    parser.add_argument("--only", default="")
    parser.add_argument("--case", type=int)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--table", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.kinds = arguments.only.split(",") if arguments.only else list(KINDS)
    if unknown := set(arguments.kinds) - set(KINDS):
        parser.error(f"--only: expected {', '.join(KINDS)}; got {', '.join(unknown)}")
    if arguments.case is not None and len(arguments.kinds) != 1:
        parser.error("--case needs --only KIND")
    arguments.keep |= arguments.case is not None
    return arguments


def main():
    arguments = parse()
    root = pathlib.Path(tempfile.mkdtemp(prefix="megalith-campaign-"))
    rows = []
    try:
        program = Program(arguments.megalith, arguments.preload, root / "cache")
        for kind in arguments.kinds:
            try:
                rows.append(run_kind(kind, program, root, arguments))
            except Skipped as why:
                print(f"{kind}: skipped: {why}")
    finally:
        if arguments.keep:
            print(f"kept: {root}")
        else:
            shutil.rmtree(root, ignore_errors=True)
    if arguments.table:
        write_table(arguments.table, rows, SEED)
    if any(row.failed for row in rows):
        sys.exit(f"campaign: {sum(row.failed for row in rows)} cases failed")


if __name__ == "__main__":
    sys.modules["campaign"] = sys.modules["__main__"]  # kinds import Case from here
    main()
