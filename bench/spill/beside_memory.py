"""A run within a budget, in a memory cgroup without swap, against the same run with all its state in memory."""

import struct
from dataclasses import replace

from cgroup import MemoryCgroup
from runs import MIB, step_seconds, train


def bits(rows):
    """Losses as exact numbers, not rounded as in the output."""
    return [struct.pack("<d", row["loss"]).hex() for row in rows]


def beside_memory(run, ram, limit, again):
    """`run` has all its state in memory. Returns its results, those of its spilled form in `ram` bytes, and the rows of that form."""
    spill = {"ram": str(ram), "spill": str(run.folder / "spill")}
    inside = train(replace(run, name="in_memory"))
    with MemoryCgroup(limit) as group:
        spilled = train(replace(run, name="spilled", memory={**run.memory, **spill}), group)
    after = step_seconds(train(replace(run, name="in_memory_again", steps=again))["rows"])
    # Runs in memory before and after, so that a change of the machine's speed is noticed.
    before, slow, tokens = step_seconds(inside["rows"]), step_seconds(spilled["rows"]), run.batch * run.sequence
    fast = (before + after) / 2
    peak = max(spilled["memory"]["peak_bytes"], spilled["memory"]["peak_bytes_by_page_tables"])
    return {
        "parameters": run.model.parameters(), "tokens": tokens, "steps": run.steps, "limit_bytes": limit, "ram_bytes": ram,
        "in_memory": {"step_s": fast, "before_and_after_s": [before, after], "tokens_per_s": tokens / fast,
                      "memory": inside["memory"]},
        "spilled": {"step_s": slow, "tokens_per_s": tokens / slow, "memory": spilled["memory"], "peak_bytes": peak,
                    "oom_kills": spilled["oom_kills"], "times_at_limit": spilled["times_at_limit"],
                    "cgroup": spilled["cgroup"]},
        "ratio": fast / slow, "losses_identical": bits(inside["rows"]) == bits(spilled["rows"]), "within_budget": peak <= ram,
    }, spilled["rows"]


def kept(r):
    return r["losses_identical"] and r["within_budget"] and r["spilled"]["oom_kills"] == 0


def told(r):
    """Returns the lines to print."""
    free, tight = r["in_memory"], r["spilled"]
    before, after = (r["tokens"] / seconds for seconds in free["before_and_after_s"])
    return [
        ("in memory", f"{free['tokens_per_s']:.1f} tokens/s (before {before:.1f}, after {after:.1f}), peak "
                      f"{free['memory']['peak_bytes'] / MIB:.0f} MiB"),
        ("spilled", f"{tight['tokens_per_s']:.1f} tokens/s, peak {tight['peak_bytes'] / MIB:.0f} of "
                    f"{r['ram_bytes'] / MIB:.0f} MiB ({tight['memory']['samples']} samples)"),
        ("killed", f"{tight['oom_kills']} times; {tight['times_at_limit']} times at the cgroup's limit"),
        ("losses", f"{'bit-identical' if r['losses_identical'] else 'DIFFERENT'} over {r['steps']} steps"),
    ]
