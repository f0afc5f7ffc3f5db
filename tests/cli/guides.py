"""Every command of the guides works as written: the ```sh blocks of docs/guides/NAME.md run in order with `bash -e`, in
an empty folder with `megalith` on the path. After the first hour, the examples of every help run: they use its files.
guides.py BINARY GUIDE.md"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from help_pages import help_pages

DEEPSPEED_FILE = re.compile(r"^cat > ds_config.json <<'END'\n.*?^END\n", re.MULTILINE | re.DOTALL)


def commands(guide):
    blocks = re.findall(r"^```sh\n(.*?)^```", guide.read_text(), re.MULTILINE | re.DOTALL)
    assert blocks, f"{guide.name} has no command to run"
    return "\n".join(blocks)


def examples(binary, guide):
    """The examples of every help that the guide does not run. One of them needs the file that another guide makes."""
    done = guide.read_text().splitlines()
    lines = dict.fromkeys(line for page in help_pages(binary) for line in page.examples if line not in done)
    file = DEEPSPEED_FILE.search((guide.parent / "coming_from.md").read_text())
    return "\n".join([file[0].rstrip(), *lines])


def main():
    binary, guide = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    script = commands(guide) + (examples(binary, guide) if guide.stem == "first_hour" else "")
    with tempfile.TemporaryDirectory() as folder:
        bin_folder, work = Path(folder) / "bin", Path(folder) / "work"
        bin_folder.mkdir()
        work.mkdir()
        (bin_folder / "megalith").symlink_to(binary)
        environment = dict(
            os.environ, PATH=f"{bin_folder}:{os.environ['PATH']}", XDG_CACHE_HOME=str(Path(folder) / "cache")
        )
        result = subprocess.run(
            ["bash", "-euxo", "pipefail", "-c", script], cwd=work, env=environment, timeout=600,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )
    print(result.stdout[-6000:])
    sys.exit(result.returncode)


main()
