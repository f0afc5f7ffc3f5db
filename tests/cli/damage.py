"""A damaged checkpoint is detected, named and skipped. The run resumes from the previous checkpoint and ends
with the same numbers. A full disk costs a checkpoint, not the run.  damage.py BINARY"""

import ctypes
import os
import resource
import shutil
import subprocess

from support import assert_same_run, checkpoints, numbers, run_cases, wait_for

NEWEST, BEFORE = "step-00000009", "step-00000006"


def flip(path, where=0.7):
    content = bytearray(path.read_bytes())
    content[int(len(content) * where)] ^= 0x10
    path.write_bytes(content)


def truncate(path):
    with open(path, "r+b") as file:
        file.truncate(path.stat().st_size - 1)


DAMAGES = {
    "flipped weight": ("model.safetensors", flip, "differ from what was written"),
    "flipped moment": ("optimizer-00001-of-00001.safetensors", flip, "differ from what was written"),
    "flipped header": ("model.safetensors", lambda path: flip(path, 0), "differ from what was written"),
    "flipped state": ("state.json", flip, "differ from what was written"),
    "truncated": ("model.safetensors", truncate, "bytes, should be"),
    "missing weights": ("model.safetensors", lambda path: path.unlink(), "missing"),
    "missing configuration": ("config.json", lambda path: path.unlink(), "missing"),
    "missing manifest": ("manifest.json", lambda path: path.unlink(), "missing"),
    "flipped manifest": ("manifest.json", lambda path: flip(path, 0), "manifest.json"),
}


def broken_off(space, name):
    """Copies the complete run, as if it had been killed after its checkpoint of step 9."""
    directory = space / "runs" / name.replace(" ", "-")
    shutil.copytree(space / "runs/whole", directory)
    shutil.rmtree(directory / "checkpoints/step-00000012")
    return directory


def whole_run(space):
    space.yaml("whole", steps=12, every=3)
    space.train("whole", "checkpoint.keep=9")


def the_checkpoint_before_is_used(space):
    whole_run(space)
    for name, (file, damage, what) in DAMAGES.items():
        directory = broken_off(space, name)
        newest = directory / "checkpoints" / NEWEST
        assert space.run("checkpoint", "verify", newest).stdout.find(": all checksums match (") > 0
        damage(newest / file)
        verified = space.run("checkpoint", "verify", newest, expect=4)
        assert (
            verified.stdout.startswith(f"{file}: ") and what in verified.stdout
        ), f"{name}: {verified.stdout}"
        listed = space.run("--json", "checkpoint", "verify", newest, expect=4).json
        assert listed["ok"] is False and listed["problems"][0]["file"] == file, listed
        said = space.train("whole", f"run.dir={directory}").stderr
        line = next((l for l in said.splitlines() if "damaged" in l), "")
        for part in (NEWEST, file, what, f"using {BEFORE} instead"):
            assert part in line, f"{name}: does not say {part!r}: {said}"
        assert "resuming at step 6" in said, said
        assert line in (directory / "log.txt").read_text(), "log.txt does not have it"
        assert_same_run(directory, space / "runs/whole", name)
        space.run("checkpoint", "verify", newest)  # written again, over the damaged one
        shutil.rmtree(directory)
    return f"{len(DAMAGES)} kinds of damage"


def without_any_valid_checkpoint_it_begins_again(space):
    whole_run(space)
    directory = broken_off(space, "all")
    for name in checkpoints(directory):
        flip(directory / "checkpoints" / name / "model.safetensors")
    said = space.train("whole", f"run.dir={directory}").stderr
    for name in ("step-00000003", BEFORE, NEWEST):
        assert f"{name} is damaged: model.safetensors" in said, said
    assert "no checkpoint" in said and "starting from step 0" in said, said
    assert_same_run(directory, space / "runs/whole", "from the beginning")


def models_are_read_from_the_newest_valid_one(space):
    whole_run(space)
    directory = broken_off(space, "read")
    flip(directory / "checkpoints" / NEWEST / "model.safetensors")
    from_run = space.run("--json", "generate", directory, "--prompt", "Ba", "--tokens", 8, "--temperature", 0)
    from_before = space.run(
        "--json",
        "generate",
        directory / "checkpoints" / BEFORE,
        "--prompt",
        "Ba",
        "--tokens",
        8,
        "--temperature",
        0,
    )
    assert NEWEST in from_run.stderr and f"using {BEFORE} instead" in from_run.stderr, from_run.stderr
    assert from_run.json == from_before.json
    for name in checkpoints(directory):
        flip(directory / "checkpoints" / name / "model.safetensors")
    flip(
        directory / "checkpoints" / NEWEST / "model.safetensors", 0.5
    )  # undoing the first flip must not heal it
    refused = space.run("generate", directory, expect=2).stderr
    assert refused.splitlines()[-1].startswith("megalith: ") and "only damaged ones" in refused, refused


def a_file_that_cannot_grow_costs_only_checkpoints(space):
    """Writes fail from the second checkpoint on. A limit on file sizes causes this, which needs no root rights. The run
    continues, the first checkpoint stays valid, and the last message says that the last state was not saved."""
    space.yaml("long", steps=600, every=20)
    space.train("long", "run.dir=runs/free")
    with open(space / "limited.txt", "wb") as out:
        process = subprocess.Popen(
            space.command("train", "long.yaml", "run.dir=runs/limited"),
            cwd=space.root,
            stdout=out,
            stderr=out,
            env=space.environment,
        )
    said = lambda: (space / "limited.txt").read_text()
    directory = space / "runs/limited"
    wait_for(lambda: checkpoints(directory) or process.poll() is not None, "a checkpoint")
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (100_000, 100_000))
    wait_for(lambda: "not saved" in said() or process.poll() is not None, "a save that fails")
    assert process.poll() is None, f"the run ended: {said()}"
    wait_for(lambda: process.poll() is not None, "the end")
    warning = next(l for l in said().splitlines() if "not saved" in l)
    for part in ("step-000", "File too large", "training continues", "unchanged"):
        assert part in warning, f"does not say {part!r}: {warning}"
    assert process.returncode == 3, f"exit code {process.returncode}: {said()[-600:]}"
    assert "could not be saved" in said() and "run the same command again to resume from" in said(), said()[-600:]
    kept = checkpoints(directory)
    for name in kept:
        space.run("checkpoint", "verify", directory / "checkpoints" / name)
    space.train("long", "run.dir=runs/limited")  # with room again
    assert_same_run(directory, space / "runs/free", "after the limit was gone")
    return f"went on from {kept[-1]}"


def a_full_disk_costs_only_checkpoints(space):
    """The file system has room for one checkpoint only."""
    space.yaml("whole", steps=12, every=3)
    space.train("whole")
    size = sum(f.stat().st_size for f in (space / "runs/whole/checkpoints/step-00000012").iterdir())
    folder = space / "runs/full/checkpoints"
    folder.mkdir(parents=True)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"size={size * 3 // 2}".encode()
    if libc.mount(b"tmpfs", str(folder).encode(), b"tmpfs", 0, options) != 0:
        return f"not tried: cannot mount a small file system here ({os.strerror(ctypes.get_errno())})"
    try:
        ended = space.train("whole", "run.dir=runs/full", expect=3)
        warning = next(l for l in ended.stderr.splitlines() if "not saved" in l)
        for part in ("step-00000006", "No space left", "training continues", "unchanged"):
            assert part in warning, f"does not say {part!r}: {warning}"
        assert checkpoints(space / "runs/full") == ["step-00000003"], checkpoints(space / "runs/full")
        assert [p.name for p in folder.iterdir()] == ["step-00000003"], "an unfinished checkpoint stayed"
        space.run("checkpoint", "verify", folder / "step-00000003")
        assert numbers(space / "runs/full") == numbers(space / "runs/whole"), "losses differ"
        assert "could not be saved" in ended.stderr and "to resume from" in ended.stderr, ended.stderr
    finally:
        libc.umount2(str(folder).encode(), 2)


run_cases(
    [
        the_checkpoint_before_is_used,
        without_any_valid_checkpoint_it_begins_again,
        models_are_read_from_the_newest_valid_one,
        a_file_that_cannot_grow_costs_only_checkpoints,
        a_full_disk_costs_only_checkpoints,
    ]
)
