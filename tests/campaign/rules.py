"""Rules by which the campaign judges the outcome of a command. A kind of attack combines these rules. It must not add rules
about exit codes."""

import re

# done, a user's mistake, a fault of the machine that left a checkpoint, one that left nothing, stopped by a signal
LEGAL_CODES = {0, 2, 3, 4, 130}
REFUSED = {2, 4}
FAULTS = {3, 4}
OUR_BUGS = ("bug of ours", "terminate called", "does not hold", "std::bad_alloc", "Segmentation fault", "AddressSanitizer",
            "runtime error:", "std::exception", "json.exception", "basic_string", "vector::_M")


class Failed(Exception):
    """A case broke a rule."""


def require(condition, text):
    if not condition:
        raise Failed(text)


def message_of(ended):
    """Returns the last message: its line, or with a list of mistakes all lines from there."""
    begin = ended.stderr.rfind("megalith: ")
    return ended.stderr[begin:].rstrip("\n") if begin >= 0 else ""


def sound(ended, codes=LEGAL_CODES):
    """Requires that the command ended in time, with a documented exit code and without a message about a bug."""
    require(ended.code is not None, f"hang: still running after {ended.seconds:.0f} s\n{ended}")
    require(ended.code in LEGAL_CODES, f"exit code {ended.code}: neither success nor refusal\n{ended}")
    for words in OUR_BUGS:
        require(words not in ended.stderr, f"says {words!r}\n{ended}")
    require(ended.code in codes, f"exit code {ended.code}, expected one of {sorted(codes)}\n{ended}")
    return ended


def names_one_of(text, names):
    return any(name in text for name in names)


def refused(ended, names, codes=REFUSED):
    """Requires that the command ended with a message that contains one of `names`."""
    sound(ended, codes)
    require(message_of(ended), f"no message of ours\n{ended}")
    require(names_one_of(ended.stderr, names), f"names none of {', '.join(names)}\n{ended}")


def refused_setting(ended, key):
    """Requires a refusal in five parts: where, key, expected, got, and what to do if that is not obvious."""
    sound(ended, {2})
    line = message_of(ended)
    require(ended.stderr.count("megalith: ") == 1, f"not one message\n{ended}")
    parts = key.split(".")
    named = [key] + [".".join(parts[:n]) for n in range(1, len(parts))]
    require(names_one_of(line, named), f"does not name {key}\n{ended}")
    require(any(words in line for words in ("expected ", "got ", "unknown key")), f"does not say what it expected\n{ended}")
    require(len(line) < 2000, f"a message of {len(line)} characters\n{ended}")
    require(not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", line), f"control characters in the message\n{ended}")


def refused_or_equal(ended, expected, names):
    """Requires the result of undamaged input, or a message that names the damage."""
    sound(ended, {0, *REFUSED})
    if ended.code != 0:
        return refused(ended, names)
    if ended.stdout != expected:
        require(names_one_of(ended.stderr, names), f"another result without a message, expected {expected[:300]!r}\n{ended}")
