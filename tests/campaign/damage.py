"""Every file of a run is damaged in every way. Each command that reads the run must give the undamaged result or name the damage."""

import json
import os
import re
import shutil

from campaign import Case
from rules import Failed, names_one_of, refused_or_equal, require, sound
from small_runs import copy_of, prepare_run, same_run, train_words, undisturbed
from support import checkpoints, numbers, tensors

LAST, NEWEST = "step-00000005", "step-00000004"


def flip(path, chance):
    content = bytearray(path.read_bytes())
    if content:
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        path.write_bytes(content)


def truncate(path, chance):
    size = path.stat().st_size
    os.truncate(path, chance.randrange(size) if size else 0)


def replace_by_folder(path, _):
    path.unlink()
    path.mkdir()


DAMAGES = {
    "flipped": flip,
    "truncated": truncate,
    "emptied": lambda path, _: os.truncate(path, 0),
    "deleted": lambda path, _: path.unlink(),
    "a folder": replace_by_folder,
    "unreadable": lambda path, _: path.chmod(0),
}
RUN = "runs/run"
COMMANDS = {
    "train": train_words(),
    "eval": ["--json", "eval", RUN, "--data", "text.txt"],
    "generate": ["--json", "generate", RUN, "--prompt", "Ba", "--tokens", 4, "--temperature", 0],
    "report": ["report", RUN],
    "verify": ["checkpoint", "verify", f"{RUN}/checkpoints/{NEWEST}"],
}


def without_rights():
    """Returns a command prefix that removes root's right to read and write every file."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        return []
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]


def names_of(file):
    """Returns the names that a message may use for a file: its name, its checkpoint, or the prefix of a shard."""
    parts = file.split("/")
    prefix = [parts[-1].rpartition(".")[0]] if file.endswith((".bin", ".idx")) else []
    return [parts[-1], *prefix, *(part for part in parts if part.startswith("step-"))]


def judge_training(ended, space, whole, file):
    """The same losses and weights, unless the command stopped and named the file."""
    sound(ended, {0, 2, 3, 4})
    if ended.code != 0:
        return require(names_one_of(ended.stderr, names_of(file)), f"does not name {file}\n{ended}")
    try:
        return same_run(space / RUN, whole / RUN, file)
    except Failed:
        # Lost lines of metrics.jsonl cannot be restored. The other lines must be the same, and a message must report the loss.
        if not file.endswith("metrics.jsonl"):
            raise Failed(f"other numbers with exit code 0\n{ended}") from None
    require("metrics.jsonl" in ended.stderr, f"numbers are lost without a message\n{ended}")
    require(set(numbers(space / RUN)) <= set(numbers(whole / RUN)), f"other numbers\n{ended}")
    last = checkpoints(whole / RUN)[-1]
    require(tensors(space / RUN / "checkpoints" / last) == tensors(whole / RUN / "checkpoints" / last), f"other weights\n{ended}")


def page(space):
    """Returns the content of report.html without times."""
    return re.sub(r"\d", "0", (space / RUN / "report.html").read_text(errors="replace"))


def damage(program, begin, whole, file, how, command, expected):
    def attack(folder, chance):
        space = copy_of(begin, folder / "space")
        DAMAGES[how](space / file, chance)
        same = (space / file).is_file() and how != "unreadable" and (space / file).read_bytes() == (begin / file).read_bytes()
        environment = {"XDG_CACHE_HOME": str(space / "cache")}
        ended = program.run(*COMMANDS[command], cwd=space, environment=environment, before=without_rights())
        if command == "train":
            return judge_training(ended, space, whole, file)
        if command == "report":
            sound(ended, {0, 2, 3, 4})
            # Nothing tells whether a value in these files was another one.
            plausible = (how == "flipped" and file.endswith(("config.yaml", "trace.json"))) or (how == "truncated" and file.endswith("config.yaml"))
            if ended.code != 0 or (page(space) != page(begin) and not plausible):
                require(names_one_of(ended.stderr, names_of(file)), f"another page without a message\n{ended}")
            return None
        if command == "verify" and f"/{NEWEST}/" in f"/{file}" and not same:
            sound(ended, {2, 3, 4})
            return require(names_one_of(ended.stdout + ended.stderr, names_of(file)), f"does not name {file}\n{ended}")
        return refused_or_equal(ended, expected, names_of(file))

    return attack


def interrupted(program, folder):
    """Prepares a run that was killed after its checkpoint of step 4, and the same run undisturbed, with their caches."""
    begin = prepare_run(program, folder / "prepared", every=2)
    undisturbed(program, begin)
    whole = copy_of(begin, folder / "whole")
    shutil.rmtree(begin / RUN / "checkpoints" / LAST)
    shutil.copytree(program.environment["XDG_CACHE_HOME"], begin / "cache")
    sound(program.run(*COMMANDS["report"], cwd=begin), {0})
    return begin, whole


def cases(setup):
    begin, whole = interrupted(setup.program, setup.folder)
    expected = {name: setup.program.run(*words, cwd=begin) for name, words in COMMANDS.items() if name != "train"}
    for ended in expected.values():
        sound(ended, {0})
    json.loads(expected["eval"].stdout)
    files = sorted(str(path.relative_to(begin)) for path in begin.rglob("*") if path.is_file())
    made = []
    for file in files:
        if file in ("run.yaml", "text.txt"):  # the user wrote these files
            continue
        for how in DAMAGES:
            for command in COMMANDS:
                said = expected[command].stdout if command in expected else ""
                made.append(Case(f"{file} {how}: {command}", damage(setup.program, begin, whole, file, how, command, said)))
    return made
