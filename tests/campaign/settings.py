"""Every key with hostile values. Keys, types and ranges come from the JSON schema that is generated from the option table, so a
new key is attacked without a change here. A value must be refused by name, or be legal.

`submit --dry-run` parses and checks a configuration in milliseconds. What it accepts goes to `train --dry-run`
(or to `memory`, for programs without `train --dry-run`), which also makes a plan."""

import json
import pathlib

from campaign import Case
from rules import Failed, refused_setting, sound
from small_runs import write_run

SCHEMA = pathlib.Path(__file__).resolve().parents[2] / "docs/reference/config.schema.json"
PARSE = ("submit", "run.yaml", "--nodes", 1, "--ranks-per-node", 1, "--dry-run")
TOGETHER = 12  # values that one case tries

SCALARS = ["-1", "0", "1", "3.5", "1e400", "-1e400", "1e-400", "nan", ".nan", ".inf", "-.inf", "0x10", "0b1", "1_000", "1,5", "007",
           "9223372036854775807", "9223372036854775808", "18446744073709551616", "99999999999999999999999", "1e30", "1e9B", "1TTB",
           "-0", "+1", "true", "null", "~", "", "''", '" "', '"\\t"', '"\\0"', '"a\\x01b"', '"\\x1b[31mred"', '"a\\nb"',
           "é", "‮abc", "😀" * 100, "x" * 100_000, "9" * 5000, "0." + "0" * 5000 + "1", "../../../../etc/passwd", "/dev/null",
           "/proc/self/mem", "none", "auto", "AUTO", "%s%n", "$(id)", "`id`", "12 steps", "-5 tokens", "99999999999999999999 steps"]
SHAPES = ["[]", "{}", "[1, 2]", "[[]]", "{a: 1}", "[nan, nan]", "[0.9, 0.9, 0.9]", "[{}]", "{path: []}", "[-1, 1]", "[null]",
          "[" * 200 + "]" * 200, "{a: " * 200 + "1" + "}" * 200, "[" + "1, " * 20_000 + "1]", "&a [*a]", "!!binary aGk=", "!x 1",
          "{<<: {a: 1}}", "{1: 2, 1: 3}"]


def keys(schema, path=""):
    """Returns (key, schema) of everything that has a value, including sections."""
    for name, inner in schema.get("properties", {}).items():
        key = f"{path}.{name}" if path else name
        yield key, inner
        for branch in (inner, *inner.get("anyOf", [])):
            yield from keys(branch, key)


def at_the_limits(schema):
    """Returns values at, below and above the ranges of the schema, and misspelt words of the schema."""
    for branch in (schema, *schema.get("anyOf", [])):
        for name in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"):
            if name in branch:
                yield from (str(branch[name]), str(branch[name] - 1), str(branch[name] + 1), f"{branch[name]}.5")
        for word in branch.get("enum", []):
            yield from (word, word.upper(), word[:-1], f"{word} ", f"[{word}]")


def check(program, plan, folder, key, value):
    def refused_or_accepted(ended):
        sound(ended, {0, 2})
        if ended.code == 2:
            refused_setting(ended, key)
        return ended.code == 0

    override = f"{key}={value}"
    if "\0" in override:
        return
    by_words = program.run(*PARSE, override, cwd=folder, seconds=20, memory=1 << 30)
    accepted = refused_or_accepted(by_words)
    if accepted:
        # Checks against other keys and the data come later. A refusal by these checks may name another key.
        sound(program.run(*plan, override, cwd=folder, seconds=60), {0, 2, 3, 4})


def attack_on(program, plan, key, values):
    def attack(folder, _):
        write_run(folder)
        wrong = []
        for value in values:
            try:
                check(program, plan, folder, key, value)
            except Failed as error:
                wrong.append(f"{value[:80]!r}: {error}")
        if wrong:
            raise Failed(f"{len(wrong)} of {len(values)} values\n  " + "\n  ".join(wrong))

    return attack


def cases(setup):
    sound(setup.program.run("memory", "run.yaml", cwd=write_run(setup.folder / "calibration")), {0})
    has_dry_run = "--dry-run" in setup.program.run("train", "--help", cwd=setup.folder).stdout
    plan = ("train", "run.yaml", "--dry-run") if has_dry_run else ("--json", "memory", "run.yaml")
    made = []
    for key, schema in dict(keys(json.loads(SCHEMA.read_text()))).items():
        values = list(dict.fromkeys([*at_the_limits(schema), *SCALARS, *SHAPES]))
        for first in range(0, len(values), TOGETHER):
            made.append(Case(f"{key} from value {first}", attack_on(setup.program, plan, key, values[first : first + TOGETHER])))
    return made
