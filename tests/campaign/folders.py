"""Hostile model folders, tokenizers and shards, as a stranger could send them. The program must refuse each one by name, or
give the result of the undamaged files. No manifest protects them, so a legal change of a value may change a result."""

import copy
import json
import struct

from campaign import Case
from damage import flip, truncate
from rules import names_one_of, refused, refused_or_equal, require, sound
from small_runs import copy_of, prepare_run, train_words, undisturbed

VALUES = [None, True, "", "x", "é\u0000", -1, 0, 1, 2.5, 1e300, -1e300, 2**31, 2**63 - 1, 2**63, 10**30, [], {}, [1], {"a": 1},
          "9" * 1000, float("nan"), float("inf")]
HEADER_VALUES = [None, "F32", "F999", [], {}, [-1], [0], [2**40], [2**62, 4], [2**63, 2], [3, 5, 7], [0, 2**63], [5, 1], [-8, 8],
                 [1.5, 2], ["a", "b"], 7, [0, 1], [10**30, 1], [1] * 1000]
GENERATE = ("--json", "generate", "model", "--prompt", "Ba", "--tokens", 4, "--temperature", 0)
MUTATIONS = 120  # changes to the structure of a tokenizer, and the same number of changes to its bytes


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def write_json(path, value):
    path.write_text(json.dumps(value))


def model_case(program, begin, name, change, may_differ, expected):
    """`change(folder/model)`; then import and generate."""
    def attack(folder, chance):
        copy_of(begin, folder / "model")
        change(folder / "model", chance)
        names = ["model", name]
        imported = program.run("import", "model", "--out", "imported", cwd=folder)
        sound(imported, {0, 2, 4})
        if imported.code != 0:
            refused(imported, names)
        ended = program.run(*GENERATE, cwd=folder)
        if not may_differ:
            return refused_or_equal(ended, expected, names)
        sound(ended, {0, 2, 3, 4})
        return ended.code == 0 or require(names_one_of(ended.stderr, names), f"names none of {names}\n{ended}")

    return attack


def configurations(program, begin, expected):
    config = json.loads((begin / "config.json").read_text())
    for field, value in config.items():
        for hostile in VALUES:
            def change(model, _, field=field, hostile=hostile):
                write_json(model / "config.json", {**config, field: hostile})

            # Another number, word or switch can be another legal model.
            legal = type(hostile) is type(value) or (is_number(hostile) and is_number(value)) or hostile is None
            yield Case(f"config.json: {field} is {str(hostile)[:30]!r}",
                       model_case(program, begin, field, change, legal, expected))


def with_header(path, header, length=None):
    content = path.read_bytes()
    data = content[8 + struct.unpack("<Q", content[:8])[0] :]
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)


def headers(program, begin, expected):
    content = (begin / "model.safetensors").read_bytes()
    header = json.loads(content[8 : 8 + struct.unpack("<Q", content[:8])[0]])
    tensors = [name for name in header if name != "__metadata__"]
    made = {}
    for number, name in enumerate(tensors[:3]):
        for field in ("dtype", "shape", "data_offsets"):
            for value in HEADER_VALUES:
                changed = copy.deepcopy(header)
                changed[name][field] = value
                made[f"tensor {number}: {field} is {str(value)[:30]}"] = changed
            changed = copy.deepcopy(header)
            del changed[name][field]
            made[f"tensor {number}: without {field}"] = changed
        for value in (None, [], 1, "x", {}):
            made[f"tensor {number} is {value}"] = {**header, name: value}
        made[f"without tensor {number}"] = {k: v for k, v in header.items() if k != name}
    made["another tensor"] = {**header, "x" * 100_000: header[tensors[0]]}
    made["a tensor with control characters"] = {**header, "\x00\x1b[31m": header[tensors[0]]}
    made["nested"] = b'{"a":' * 50_000
    made["a list"] = [1, 2]
    made["not JSON"] = b"\xff" * 100
    made["empty"] = b""
    for text, changed in made.items():
        def change(model, _, changed=changed):
            with_header(model / "model.safetensors", changed)

        yield Case(f"safetensors: {text}", model_case(program, begin, "model.safetensors", change, text.startswith("another"), expected))
    for length in (0, 1, 7, 2**31, 2**40, 2**63 - 1, 2**63, 2**64 - 1):
        def change(model, _, length=length):
            with_header(model / "model.safetensors", header, length)

        yield Case(f"safetensors: header of {length} bytes", model_case(program, begin, "model.safetensors", change, False, expected))


def nodes(value, path=()):
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in inner:
        yield from nodes(child, (*path, key))


def replaced(tree, path, value):
    if not path:
        return value
    tree = copy.deepcopy(tree)
    at = tree
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return tree


def in_structure(path, chance):
    tree = json.loads(path.read_text())
    places = list(nodes(tree))
    shallow = [place for place in places if len(place) <= 3]
    write_json(path, replaced(tree, chance.choice(chance.choice((places, shallow))), chance.choice(VALUES)))


def in_bytes(path, chance):
    for _ in range(chance.choice((1, 2, 20))):
        flip(path, chance)


def tokenizer_case(program, begin, change):
    def attack(folder, chance):
        (folder / "tokenizer.json").write_bytes((begin / "tokenizer.json").read_bytes())
        (folder / "text.txt").write_text("Ba de lon. \U0001f600 \x01 an\n" * 20)
        change(folder / "tokenizer.json", chance)
        ended = program.run("tokenize", "--tokenizer", "tokenizer.json", "--out", "shards", "text.txt", cwd=folder, memory=1 << 30)
        sound(ended, {0, 2, 4})
        if ended.code != 0:
            return refused(ended, ["tokenizer.json"])
        return sound(program.run("shards", "shards", "--tokenizer", "tokenizer.json", "--document", 0, cwd=folder), {0, 2})

    return attack


def huge_number(at):
    def change(path, chance):
        content = bytearray(path.read_bytes())
        content[at : at + 8] = struct.pack("<Q", chance.choice((2**64 - 1, 2**63, 2**40, 0, 1)))
        path.write_bytes(content)

    return change


def append(path, chance):
    with open(path, "ab") as out:
        out.write(chance.randbytes(chance.randrange(1, 100)))


SHARD_DAMAGES = {"flipped": flip, "truncated": truncate, "longer": append, "number at 9": huge_number(9), "number at 17": huge_number(17),
                 "number at 18": huge_number(18), "number at 26": huge_number(26), "number at 34": huge_number(34)}


def shard_case(program, begin, file, change):
    def attack(folder, chance):
        space = copy_of(begin, folder / "space")
        change(space / file, chance)
        if (space / file).read_bytes() == (begin / file).read_bytes():
            return
        shown = program.run("shards", "shards", "--document", 0, cwd=space, memory=1 << 30)
        sound(shown, {0, 2, 4})
        if shown.code != 0:
            refused(shown, ["shards"])
        ended = program.run(*train_words(directory="runs/other"), "data.train=shards", "data.tokenizer=tokenizer.json", cwd=space)
        sound(ended, {0, 2, 4})
        if ended.code != 0:
            return refused(ended, ["shards"])
        # Other tokens give other losses. Losses must be those of undamaged files, or a message must say why not.
        if losses(ended) != losses_of(begin):
            require(names_one_of(ended.stderr, ["shards.bin", "shards.idx"]), f"other losses without a message\n{ended}")

    return attack


def losses(ended):
    return [line.split("lr")[0] for line in ended.stderr.splitlines() if line.startswith("step ")]


def losses_of(begin):
    return json.loads((begin / "losses.json").read_text())


def prepare_shards(program, folder, tokenizer):
    begin = prepare_run(program, folder)
    (begin / "tokenizer.json").write_bytes(tokenizer.read_bytes())
    sound(program.run("tokenize", "--tokenizer", "tokenizer.json", "--out", "shards", "text.txt", cwd=begin), {0})
    ended = program.run(*train_words(directory="runs/first"), "data.train=shards", "data.tokenizer=tokenizer.json", cwd=begin)
    sound(ended, {0})
    write_json(begin / "losses.json", losses(ended))
    return begin


def cases(setup):
    program, made = setup.program, []
    for layout in ("1 rank", "experts"):
        run = prepare_run(program, setup.folder / layout.replace(" ", "-"), layout)
        undisturbed(program, run, layout)
        sound(program.run("export", "runs/run", "--out", "model", cwd=run), {0})
        (run / "model/manifest.json").unlink()
        expected = program.run(*GENERATE, cwd=run)
        sound(expected, {0})
        made += [*configurations(program, run / "model", expected.stdout), *headers(program, run / "model", expected.stdout)]
    model = setup.folder / "1-rank/model"
    for n in range(MUTATIONS):
        made.append(Case(f"tokenizer.json, structure {n}", tokenizer_case(program, model, in_structure)))
        made.append(Case(f"tokenizer.json, bytes {n}", tokenizer_case(program, model, in_bytes)))
    shards = prepare_shards(program, setup.folder / "shards", model / "tokenizer.json")
    for file in ("shards.bin", "shards.idx"):
        for name, change in SHARD_DAMAGES.items():
            for n in range(5):
                made.append(Case(f"{file} {name} {n}", shard_case(program, shards, file, change)))
    return made
