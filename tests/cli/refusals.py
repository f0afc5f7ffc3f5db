"""Checks the refusal of a mistake of a user: a message on stderr that says where, what was expected, what was found and what
to do, and an exit code that says who must act. The message is one line, or a list with an indented line for each mistake."""

import sys

SHOW = "--show" in sys.argv  # prints every message for a reader


def refused(space, *arguments, says, code=2, quiet=True):
    """Expects that the command is refused with a message that contains all of `says`. With `quiet`, the command prints nothing
    before the message."""
    result = space.run(*arguments, expect=None)
    lines = result.stderr.splitlines()
    what = f"{' '.join(map(str, arguments))}\n{result.stderr}"
    assert result.code == code, f"exit code {result.code}, expected {code}: {what}"
    begins = [n for n, line in enumerate(lines) if line.startswith("megalith: ")]
    assert len(begins) == 1, f"not one message: {what}"
    message = lines[begins[0] :]
    assert all(line.startswith("  ") for line in message[1:]), f"more after the message: {what}"
    assert len(message) == 1 or message[0].endswith(f" {len(message) - 1} mistakes:"), f"not a list of mistakes: {what}"
    assert not quiet or begins == [0], f"more than the message: {what}"
    assert result.stdout == "", f"something on stdout: {result.stdout}"
    text = "\n".join(message)
    assert "bug of ours" not in text and "terminate called" not in result.stderr, what
    if SHOW:
        print("   ", text.replace(str(space.root), ""))
    for part in says:
        assert part in text, f"does not say {part!r}: {what}"
    return text
