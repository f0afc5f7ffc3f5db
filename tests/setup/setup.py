"""scripts/setup and what it installs: every version is bounded, and packages that tests compare with have hashes.
setup.py SOURCE_FOLDER"""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1])
SETUP = (ROOT / "scripts/setup").read_text()
BOUNDS = [line.split() for line in re.search(r"^bounds='(.*?)'", SETUP, re.MULTILINE | re.DOTALL).group(1).splitlines()]


def setup(versions):
    """Returns the output of scripts/setup on a machine with these Debian packages and a LibTorch."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "torch/lib").mkdir(parents=True)
        (root / "torch/lib/libtorch_cpu.so").touch()
        lines = "".join(f"{name} installed {version}\n" for name, version in versions.items())
        (root / "dpkg-query").write_text(f"#!/bin/sh\ncat <<END\n{lines}END\n")
        (root / "dpkg-query").chmod(0o755)
        environment = {"PATH": f"{root}:/usr/bin:/bin", "TORCH_DIR": str(root / "torch")}
        return subprocess.run([ROOT / "scripts/setup"], env=environment, capture_output=True, text=True, timeout=60)


def every_package_is_bounded_and_explained():
    reasons = (ROOT / "docs/dependencies.md").read_text()
    for name, least, below in BOUNDS:
        assert re.search(rf"^\| {re.escape(name)} \| {re.escape(least)} \| {re.escape(below)} \| \w", reasons, re.MULTILINE), name
    assert re.search(r"^torch=torch==[\d.]+$", SETUP, re.MULTILINE)


def a_version_outside_its_bounds_is_refused():
    good = {name: f"1:{least}.1+ds-2" for name, least, _ in BOUNDS}
    done = setup(good)
    assert done.returncode == 0 and not done.stderr, done.stderr
    def before(version):
        head, _, last = version.rpartition(".")
        return f"{head}.{int(last) - 1}" if head and int(last) else "0.0.1"

    for outside in ({n: f"2:{below}-1" for n, _, below in BOUNDS}, {n: f"{before(least)}+dfsg-1" for n, least, _ in BOUNDS}):
        done = setup(outside)
        assert done.returncode == 2, done.stdout
        for name in outside:
            assert f" {name} " in done.stderr, f"{name} is not refused: {done.stderr}"


def references_of_tests_have_hashes():
    for file in ("requirements.txt", "requirements_source.txt"):
        lines = [line for line in (ROOT / "tests" / file).read_text().splitlines() if not line.startswith("#")]
        assert lines
        for line in lines:
            assert re.fullmatch(r"[a-z0-9-]+==[\w.+]+( --hash=sha256:[0-9a-f]{64})+", line), f"{file}: {line}"
            assert not line.startswith(("torch==", "nvidia-", "triton")), f"{file}: {line} differs between CPU and CUDA"
    assert "--require-hashes" in SETUP


for case in (every_package_is_bounded_and_explained, a_version_outside_its_bounds_is_refused, references_of_tests_have_hashes):
    case()
    print(f"ok    {case.__name__.replace('_', ' ')}")
