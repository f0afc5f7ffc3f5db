"""Writes the page with a row for each kind of attack."""

import re
import subprocess
import time
from dataclasses import dataclass

HEADER = """# Reliability
The campaign attacks the program with a fixed seed and judges every outcome by rules: an undisturbed result, or a refusal by
name. It accepts no crash, no hang, no message about a bug and no silently different number.
The table is written by `make test-long WHAT=campaign` (`tests/campaign/campaign.py`); do not edit. A part that runs again
replaces its row. [Long runs](reliability/long_runs.md) lists the other long tests.

| kind | attack | date | commit | cases | passed | failed | seconds |
|---|---|---|---|---|---|---|---|
"""


@dataclass
class Row:
    kind: str
    attack: str
    cases: int
    failed: int
    seconds: float


def commit(folder):
    def git(*words):
        return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True).stdout.strip()

    changed = git("status", "--porcelain", "--", ".", ":!docs")
    return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")


def write_table(page, rows, seed):
    """Replaces the rows of the kinds that ran; other rows stay."""
    old = page.read_text().splitlines() if page.exists() else []
    kept = {m[1]: line for line in old if (m := re.match(r"\| (\w+) \| .* \| \d", line))}
    date, at = time.strftime("%Y-%m-%d"), commit(page.parent)
    for row in rows:
        passed = row.cases - row.failed
        kept[row.kind] = (f"| {row.kind} | {row.attack} | {date} | {at} | {row.cases} | {passed} | {row.failed} | "
                          f"{row.seconds:.0f} |")
    page.write_text(HEADER + "".join(f"{kept[kind]}\n" for kind in sorted(kept)) + f"\nThe seed is {seed}.\n")
