"""Compares two recordings bit for bit.  compare.py OLD NEW [--names FILE] [--only WORD] [--skip PATTERN]... [--most N]

--only: runs whose names contain the word, as in record.py. --names: JSON, {"ops": {"old name": "new name"}}, for ops that were renamed. --skip: items that may differ, as a shell pattern
over "run/item", such as 'dump/costs' or '*/plan'. Exit code 1 if anything differs."""

import argparse
import fnmatch
import json
import pathlib
import re
import sys


def load(folder):
    """"run/item" -> lines."""
    items = {}
    for path in sorted((folder / "dump").glob("*.txt")):
        items[f"dump/{path.stem}"] = path.read_text().splitlines()
    for path in sorted((folder / "runs").glob("*.json")):
        for key, value in json.loads(path.read_text()).items():
            items[f"{path.stem}/{key}"] = value if isinstance(value, list) else [value]
    return items


def renamed(items, ops):
    def new_name(match):
        return f"[{ops.get(match[1], match[1]).replace(' ', '_')}]"

    if ops:
        for lines in items.values():
            lines[:] = [re.sub(r"\[([a-z_]+)\]", new_name, line) for line in lines]
    return items


def differences(old, new):
    """(where, before, after) of the lines that differ."""
    title = ""
    for number in range(max(len(old), len(new))):
        a = old[number] if number < len(old) else "(nothing)"
        b = new[number] if number < len(new) else "(nothing)"
        if a.startswith("== "):
            title = a[3:]
        if a != b:
            yield f"line {number + 1}" + (f", {title}" if title else ""), a, b


def show_words(a, b):
    """The words of two long lines that differ."""
    left, right = a.split(" "), b.split(" ")
    if len(left) != len(right) or len(a) < 160:
        return a[:400], b[:400]
    pairs = [(x, y) for x, y in zip(left, right) if x != y]
    return " ".join(x for x, _ in pairs)[:400], " ".join(y for _, y in pairs)[:400]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--names", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--skip", action="append", default=[])
    parser.add_argument("--most", type=int, default=3, help="differences shown of a run")
    arguments = parser.parse_args()
    about = [json.loads((folder / "about.json").read_text()) for folder in (arguments.old, arguments.new)]
    if about[0]["processor"] != about[1]["processor"]:
        sys.exit(f"recorded on {about[0]['processor']} and on {about[1]['processor']}: record both on one type of processor")
    ops = json.loads(arguments.names.read_text())["ops"] if arguments.names else {}
    old, new = renamed(load(arguments.old), ops), load(arguments.new)
    shown, count, compared = {}, 0, 0
    for key in list(old) + [key for key in new if key not in old]:
        if arguments.only not in key.split("/")[0] or any(fnmatch.fnmatch(key, pattern) for pattern in arguments.skip):
            continue
        compared += 1
        for where, a, b in differences(old.get(key, []), new.get(key, [])):
            count += 1
            run = key.split("/")[0] if not key.startswith("dump/") else key
            shown[run] = shown.get(run, 0) + 1
            if shown[run] <= arguments.most:
                before, after = show_words(a, b)
                print(f"{key}, {where}\n  - {before}\n  + {after}")
    print(f"{compared} items compared, {count} differences in {len(shown)} runs" + (f": {', '.join(shown)}" if shown else ""))
    sys.exit(1 if count or not compared else 0)


if __name__ == "__main__":
    main()
