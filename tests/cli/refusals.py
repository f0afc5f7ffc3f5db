"""One refusal, as every mistake of a user must be met with: one line on stderr that says where, what was expected, what came and
what to do, and an exit code that says whose fault it is."""

import sys

SHOW = "--show" in sys.argv  # prints every message, to be read aloud


def refused(space, *arguments, says, code=2, quiet=True):
    """The command is refused with one line that holds all of `says`. `quiet`: nothing else is printed
    before it."""
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
