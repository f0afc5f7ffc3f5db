"""What is kept of a run: everything that follows from the settings, nothing that follows from the machine's moment."""

import hashlib
import json
import re
import struct

TIMES = ("step_s", "tokens_per_s", "mem_peak_bytes", "save_s")
UNKNOWN = "*"  # in place of a value that may differ


def load(text):
    """JSON with floating-point numbers as they are written."""
    return json.loads(text, parse_float=lambda number: number)


def metrics_item(path):
    return [json.dumps({k: UNKNOWN if k in TIMES else v for k, v in load(line).items()}) for line in path.read_text().splitlines()]


def folder_items(folder, name):
    """Every tensor and every other file of a checkpoint or an exported model."""
    items = {}
    assert folder.is_dir(), folder
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        content = path.read_bytes()
        key = f"{name}/{path.relative_to(folder)}"
        if path.name == "state.json":
            items[key] = json.dumps(load(content))
            continue
        if path.name == "manifest.json":
            continue  # hashes of the other files, and of state.json
        items[key] = hashlib.sha256(content).hexdigest()
        if path.suffix != ".safetensors":
            continue
        begin = 8 + int.from_bytes(content[:8], "little")
        for tensor, entry in json.loads(content[8:begin]).items():
            if tensor != "__metadata__":
                first, end = entry["data_offsets"]
                digest = hashlib.sha256(content[begin + first : begin + end]).hexdigest()
                items[f"{key}:{tensor}"] = f"{entry['dtype']} {entry['shape']} {digest}"
    return items


def op_lines(ops):
    """Returns one line per op. Op names are in brackets, so that compare.py replaces only these."""
    return [f"[{row['op'].replace(' ', '_')}] {row.get('block', '')} {row['count']}" for row in ops]


def without_times(value):
    if isinstance(value, dict):
        return {k: UNKNOWN if k.endswith("_s") or k in ("seconds", "stalls", "limits") else without_times(v) for k, v in value.items()}
    return [without_times(v) for v in value] if isinstance(value, list) else value


def plan_item(plan, ram_is_fixed=True):
    """Returns the comparable part of plan.json or of the output of `simulate`. Peaks count only tensors."""
    process = plan["predicted"]["memory"]["process"]
    plan = without_times(plan) | ({"ops": op_lines(plan["ops"])} if "ops" in plan else {})
    plan["predicted"]["memory"]["process"] = plan["machine"] = UNKNOWN
    plan["predicted"]["peak_bytes"] -= process
    for stage in plan["predicted"]["stages"]:
        stage["peak_bytes"] -= process
    for shape in plan["shapes"]:
        for key in shape:
            if key.startswith("peak"):
                shape[key] -= process
    if not ram_is_fixed:
        plan["budget_bytes"] = UNKNOWN
    return [f"{k}: {json.dumps(v)}" for k, v in plan.items()]


def memory_item(table, ram_is_fixed=True):
    process = table["planned"]["process"]
    table = without_times(table)
    for kinds in ("planned", "unadapted"):
        table[kinds]["process"] = UNKNOWN
        table[f"{kinds}_bytes"] -= process
    table["most_bytes"] -= process
    for shape in table["shapes"]:
        for key in shape:
            if key.startswith("peak"):
                shape[key] -= process
    table["ways"] = [re.sub(r"ram=\d+", "ram=*", way["setting"]) + f" {way['bytes'] - process}" for way in table["ways"]]
    if not ram_is_fixed:
        table["budget_bytes"] = UNKNOWN
    return [f"{k}: {json.dumps(v)}" for k, v in table.items()]


def command_item(result):
    return [f"{k}: {json.dumps(v)}" for k, v in result.items()]


def summary_item(path):
    if not path.exists():
        return ["none"]
    summary = load(path.read_text())
    ops = op_lines(summary.pop("ops", []))
    ranks = [rank["stage"] for rank in summary.pop("ranks", [])]
    measured = sorted(summary.pop("measured", {}))
    return [f"{k}: {json.dumps(v)}" for k, v in without_times(summary).items()] + [f"measured: {measured}", f"ranks: {ranks}"] + ops


def fields(message):
    """(number, value) of a protocol buffer's fields."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        size = {0: None, 1: 8, 2: -1, 5: 4}[key & 7]
        if size is None:
            yield key >> 3, varint()
            continue
        size = varint() if size < 0 else size
        yield key >> 3, message[at : at + size]
        at += size


def tensorboard_item(folder):
    """Returns step, tag and value of every record, without times."""
    lines = []
    for path in sorted(folder.rglob("*tfevents*")):
        content, at = path.read_bytes(), 0
        while at < len(content):
            (size,) = struct.unpack_from("<Q", content, at)
            event = dict(fields(content[at + 12 : at + 12 + size]))
            at += 16 + size
            for number, value in fields(event.get(5, b"")):
                parts = dict(fields(value))
                tag = parts[1].decode()
                shown = UNKNOWN if tag in TIMES else parts[2].hex() if 2 in parts else "text"
                lines.append(f"{event.get(2, 0)} {tag} {shown}")
    return lines


def run_items(folder, ram_is_fixed=True):
    items = {
        "metrics": metrics_item(folder / "metrics.jsonl"),
        "plan": plan_item(json.loads((folder / "plan.json").read_text()), ram_is_fixed),
        "summary": summary_item(folder / "summary.json"),
        "tensorboard": tensorboard_item(folder),
    }
    config = (folder / "config.yaml").read_text()
    items["config"] = (config if ram_is_fixed else re.sub(r"\bram: \S+", "ram: *", config)).splitlines()
    for checkpoint in sorted((folder / "checkpoints").iterdir()):
        items |= folder_items(checkpoint, checkpoint.name)
    for part in ("data", "analysis"):
        if (folder / part).exists():
            items |= {k: v for k, v in folder_items(folder / part, part).items() if not k.endswith(".lock")}
    return items
