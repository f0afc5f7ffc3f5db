"""Every command of the guides works as written: the ```sh blocks of docs/guides/NAME.md run in order with `bash -e`, in
an empty folder with `megalith` on the path.  guides.py BINARY GUIDE.md"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path


def commands(guide):
    blocks = re.findall(r"^```sh\n(.*?)^```", guide.read_text(), re.MULTILINE | re.DOTALL)
    assert blocks, f"{guide.name} has no command to run"
    return "\n".join(blocks)


def main():
    binary, guide = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        bin_folder, work = Path(folder) / "bin", Path(folder) / "work"
        bin_folder.mkdir()
        work.mkdir()
        (bin_folder / "megalith").symlink_to(binary)
        environment = dict(
            os.environ, PATH=f"{bin_folder}:{os.environ['PATH']}", XDG_CACHE_HOME=str(Path(folder) / "cache")
        )
        result = subprocess.run(
            ["bash", "-euxo", "pipefail", "-c", commands(guide)], cwd=work, env=environment, timeout=600,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )
    print(result.stdout[-6000:])
    sys.exit(result.returncode)


main()
