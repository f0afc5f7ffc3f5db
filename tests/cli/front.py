"""`megalith` links neither LibTorch nor MPI. It runs the light commands alone, and starts `megalith-engine`, from the same
folder, for all others.  front.py BINARY"""

import shlex
import shutil
import struct
import subprocess
import time

from help_pages import HelpPage, help_pages
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
    alone(space, "submit", "small.yaml", "--nodes", "1", "--ranks-per-node", "1", "--sbatch=--exclusive", "train.steps=3", "--dry-run")
    script = (space / "runs/small/submit.sh").read_text()
    assert "#SBATCH --exclusive\n" in script and "'train.steps=3'" in script, script  # a setting may follow --sbatch


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
    for arguments, said in ((["trian"], "did you mean train?"), (["eval", "x"], "--retrieval is required"),
                            (["train", "x.yaml", "--ranks", "0"], "expected a whole number from 1, got 0")):
        done = alone(space, *arguments)
        assert done.returncode == 2 and said in done.stderr, (arguments, done)


def program_alone(space):
    alone(space, "--version")
    return space / "alone/megalith"


def every_help_says_first_what_the_command_does(space):
    """Then its usage, one text per argument and option in whole sentences, and two examples."""
    pages = list(help_pages(program_alone(space)))
    assert len(pages) == 1 + 18 + 3, [page.command for page in pages]  # tokenizer train, checkpoint verify, config from-deepspeed
    for page in pages:
        assert page.about[0].isupper() and "." in page.about, page.about
        assert page.usage.startswith(" ".join(["Usage: megalith", *page.command])), page.usage
        assert list(page.sections)[-1] == "Examples" and len(set(page.examples)) == 2, page.sections
        for name, about in page.rows():
            assert about[0].isupper() and about.endswith("."), (page.command, name, about)
        assert all(len(line) <= 100 for line in page.lines if line.strip() not in page.examples), page.lines
    generate = HelpPage(program_alone(space), ["generate"])
    assert dict(generate.rows())["--tokens N"].endswith("Default: 100."), list(generate.rows())
    tokenize = HelpPage(program_alone(space), ["tokenize"])
    assert tokenize.usage == "Usage: megalith tokenize FILE... --tokenizer FILE --out PREFIX [OPTIONS]", tokenize.usage
    assert "Not with --separator." in dict(tokenize.rows())["--separator-token TEXT"]
    # A value on the same command line does not become the default.
    assert alone(space, "generate", "x", "--tokens", "7", "--help").stdout.splitlines() == generate.lines
    return f"{len(pages)} commands"


def every_example_of_a_help_parses(space):
    """The front program without an engine parses all options, but computes nothing. guides.py runs the examples."""
    for page in help_pages(program_alone(space)):
        for example in page.examples:
            words = shlex.split(example)
            assert words[:1 + len(page.command)] == ["megalith", *page.command] or not page.command, example
            done = alone(space, *words[1:])
            assert "; see megalith" not in done.stderr, (example, done.stderr)
            assert "cannot start" in done.stderr or done.returncode in (0, 2, 4), (example, done)  # no such files
            for word in words:
                if "=" in word:
                    assert alone(space, "config", word.split("=")[0]).returncode == 0, example
    assert "; see megalith" in alone(space, "train", "first.yaml", "--fast").stderr  # what an example must not say


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
           every_help_says_first_what_the_command_does, every_example_of_a_help_parses, without_a_command_it_says_what_to_do_next])
