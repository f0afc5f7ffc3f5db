"""Checks the refusal of a mistake of a user: one line on stderr that says where, what was expected, what was found and what to
do, and an exit code that says who must act."""

import sys

SHOW = "--show" in sys.argv  # prints every message for a reader


def refused(space, *arguments, says, code=2, quiet=True):
    """Expects that the command is refused with one line that contains all of `says`. With `quiet`, the command prints nothing
    before this line."""
    result = space.run(*arguments, expect=None)
    lines = result.stderr.splitlines()
    what = f"{' '.join(map(str, arguments))}\n{result.stderr}"
    assert result.code == code, f"exit code {result.code}, expected {code}: {what}"
    assert sum(line.startswith("megalith: ") for line in lines) == 1 and lines[-1].startswith(
        "megalith: "
    ), f"not one line: {what}"
    assert not quiet or len(lines) == 1, f"more than the message: {what}"
    assert result.stdout == "", f"something on stdout: {result.stdout}"
    assert "bug of ours" not in lines[-1] and "terminate called" not in result.stderr, what
    if SHOW:
        print("   ", lines[-1].replace(str(space.root), ""))
    for part in says:
        assert part in lines[-1], f"does not say {part!r}: {what}"
    return lines[-1]
