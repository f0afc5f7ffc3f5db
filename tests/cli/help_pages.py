"""Reads the help of a command and of all commands below it."""

import re
import subprocess


class HelpPage:
    """The help of a command: what it says about the command, its usage, and the lines of its sections."""

    def __init__(self, program, command):
        done = subprocess.run([str(program), *command, "--help"], capture_output=True, text=True)
        assert done.returncode == 0, (command, done)
        self.command, self.lines = command, done.stdout.splitlines()
        self.about, self.usage, *sections = done.stdout.rstrip("\n").split("\n\n")
        self.sections = {re.split("[,:]", section)[0]: section.splitlines()[1:] for section in sections}

    @property
    def examples(self):
        return [line.strip() for line in self.sections["Examples"]]

    def rows(self):
        """(name, text) of every argument, subcommand and option."""
        lines = [line for title, lines in self.sections.items() if title != "Examples" for line in lines]
        starts = [i for i, line in enumerate(lines) if line[2] != " "] + [len(lines)]
        for begin, end in zip(starts, starts[1:]):
            name, _, about = lines[begin].strip().partition("  ")
            yield name, " ".join(" ".join([about, *lines[begin + 1:end]]).split())


def help_pages(program, command=()):
    """The help of a command and of all commands below it."""
    page = HelpPage(program, command)
    yield page
    for line in page.sections.get("Commands", []):
        if line[2] != " ":
            yield from help_pages(program, (*command, line.split()[0]))
