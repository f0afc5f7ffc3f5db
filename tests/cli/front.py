"""`megalith` links neither LibTorch nor MPI. It runs the light commands alone, and starts `megalith-engine`, from the same
folder, for all others.  front.py BINARY"""

import shlex
import shutil
import struct
import subprocess
import time

from support import BINARY, run_cases


def it_loads_neither_libtorch_nor_mpi(space):
    loaded = subprocess.run(["ldd", str(BINARY)], capture_output=True, text=True, check=True).stdout
    for library in ("torch", "c10", "mpi", "gomp"):
        assert f"lib{library}" not in loaded, loaded


def alone(space, *arguments):
    folder = space / "alone"
    folder.mkdir(exist_ok=True)
    shutil.copy(BINARY, folder / "megalith")
    return subprocess.run([str(folder / "megalith"), *arguments], capture_output=True, text=True, cwd=space.root)


def light_commands_need_no_engine(space):
    space.yaml("small")
    for arguments in (["--help"], ["train", "--help"], ["--version"], ["config", "train"], ["presets"],
                      ["submit", "small.yaml", "--nodes", "1", "--ranks-per-node", "1", "--dry-run"]):
        done = alone(space, *arguments)
        assert done.returncode == 0 and done.stdout, (arguments, done)
    script = (space / "runs/small/submit.sh").read_text()
    assert f"'{space / 'alone/megalith'}' 'train'" in script, script


def models_are_converted_without_an_engine(space):
    dim, ffn, layers, heads, words, length = 8, 12, 2, 2, 5, 6
    floats = words * dim + layers * (2 * dim + 4 * dim * dim + 3 * dim * ffn) + dim + length * dim // heads
    header = struct.pack("7i", dim, ffn, layers, heads, heads, words, length)
    (space / "llama2c.bin").write_bytes(header + bytes(4 * floats))
    for arguments in (["import", "llama2c.bin", "--out", "imported"],
                      ["export", "imported", "--out", "exported", "--dtype", "bf16"]):
        done = alone(space, *arguments)
        assert done.returncode == 0, (arguments, done)
        told = "imported: the folder has no tokenizer" in done.stderr and "--tokenizer FILE" in done.stderr
        assert told == (arguments[0] == "import"), done.stderr
    assert (space / "exported/model.safetensors").exists()


def without_an_engine_it_says_so(space):
    space.yaml("small")
    done = alone(space, "train", "small.yaml")
    assert done.returncode == 4, done
    assert "cannot start" in done.stderr and "alone/megalith-engine" in done.stderr, done.stderr
    assert "No such file" in done.stderr and "make build" in done.stderr, done.stderr


def mistakes_are_told_without_the_engine(space):
    for arguments, said in ((["trian"], "did you mean train?"), (["eval", "x"], "--data or --choices is required"),
                            (["train", "x.yaml", "--ranks", "0"], "expected a whole number from 1, got 0")):
        done = alone(space, *arguments)
        assert done.returncode == 2 and said in done.stderr, (arguments, done)


def help_of(space, *command):
    """The examples, the summary and the subcommands in a command's help."""
    done = alone(space, *command, "--help")
    assert done.returncode == 0, (command, done)
    first, summary, rest = done.stdout.split("\n\n", 2)
    assert rest.startswith("Usage: "), (command, done.stdout)
    assert len(summary.splitlines()) == 1, (command, summary)
    below = rest.split("Subcommands:\n")[1].splitlines() if "Subcommands:" in rest else []
    return first.splitlines(), [line.split()[0] for line in below if line.startswith("  ") and line[2] != " "]


def every_help_begins_with_examples_that_parse(space):
    """The front program without an engine parses all options, but computes nothing."""
    seen = []

    def check(command):
        examples, below = help_of(space, *command)
        seen.append(" ".join(command))
        assert len(examples) == 2 and examples[0] != examples[1], (command, examples)
        for example in examples:
            words = shlex.split(example)
            assert words[0] == "megalith" and (not command or command[0] in words), (command, example)
            done = alone(space, *words[1:])
            assert "; see megalith" not in done.stderr, (example, done.stderr)
            assert "cannot start" in done.stderr or done.returncode in (0, 2, 4), (example, done)  # no such files
            for word in words:
                if "=" in word:
                    assert alone(space, "config", word.split("=")[0]).returncode == 0, example
        for name in below:
            check([*command, name])

    check([])
    assert len(seen) == 1 + 17 + 3, seen  # tokenizer train, checkpoint verify, config from-deepspeed
    assert "; see megalith" in alone(space, "train", "first.yaml", "--fast").stderr  # what an example must not say
    return f"{len(seen)} commands"


def without_a_command_it_says_what_to_do_next(space):
    done = alone(space)
    assert done.returncode == 2 and done.stderr == "", done
    for part in ("make quickstart", "train examples/quickstart.yaml", "COMMAND --help", "megalith config"):
        assert part in done.stdout, done.stdout
    assert "Runs in this folder" not in done.stdout, done.stdout
    refused = alone(space, "--json")
    assert refused.returncode == 2 and "expected a command" in refused.stdout, refused
    for number in range(7):
        run = space / f"runs/run-{number}"
        (run / "checkpoints/step-00000100").mkdir(parents=True)
        for name in ("config.yaml", "metrics.jsonl"):
            (run / name).write_text("")
        time.sleep(0.01)
    space.yaml("run-6")
    said = alone(space).stdout
    assert "Runs in this folder: runs/run-6, runs/run-5" in said and "runs/run-2 and 2 more" in said, said
    for part in ("train run-6.yaml", "generate runs/run-6", "report runs/run-6"):
        assert part in said, said
    assert all(len(line) < 100 for line in said.splitlines() if "alone" not in line), said


run_cases([it_loads_neither_libtorch_nor_mpi, light_commands_need_no_engine,
           models_are_converted_without_an_engine, without_an_engine_it_says_so, mistakes_are_told_without_the_engine,
           every_help_begins_with_examples_that_parse, without_a_command_it_says_what_to_do_next])
