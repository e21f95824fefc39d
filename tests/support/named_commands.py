"""Commands that a page names, and whether the command lines there are would take them; nothing of them is run.

A command is what stands in backticks or begins a line of a block: `python -m tests…`, `make TARGET`, `stream-engine
VERB …`. Options alone (`--only free`) belong to a command of the same section. Words in capitals stand for one's own:
NUMBER and N for a number, any other for a path or a name. What stands in brackets may be left out.
"""

import argparse
import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec

import click
import pytest

from stream_engine.commands import VERBS, verb
from tests.conftest import ROOT

TARGETS = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.M))
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.S | re.M)
_CODE = re.compile(r"`([^`]+)`")
_COMMAND = re.compile(r"^(?:[A-Z_]+=\S+ |time )*(python -m (?:tests|pytest)\b|make \w|stream-engine [a-z])")


class NotTaken(ValueError):
    """A command that does not exist or does not take what it is given; the message is its own."""


class _Parsed(Exception):
    """A command line was read; what it asks for is not done."""


def named(text: str) -> Iterator[str]:
    """The commands of a text, in order."""
    for _, block in _FENCED.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            if _COMMAND.match(line.removeprefix("$ ")):
                yield re.split(r"\s+#\s", line.removeprefix("$ "))[0]
    for code in _spans(text):
        if _COMMAND.match(code):
            yield code


def options(text: str) -> Iterator[str]:
    """Code that begins with an option: of a command that the section names elsewhere."""
    return (code for code in _spans(text) if code.startswith("--"))


def _spans(text: str) -> Iterator[str]:
    return (" ".join(code.split()) for code in _CODE.findall(_FENCED.sub("", text)))


def check(command: str) -> None:
    """Raise NotTaken unless a command exists and takes its words."""
    command = command.partition(" > ")[0]  # into a file
    words = shlex.split(re.sub(r"[\[\]]|\.{3}|…", " ", re.sub(r"(\w)\|[\w|]+", r"\1", command)))
    while re.match(r"[A-Z_]+=|time$", words[0]):
        words = words[1:]
    match words:
        case ["make", target, *_]:
            if target not in TARGETS:
                raise NotTaken(f"{command}: the Makefile has no {target}")
        case ["python", "-m", "pytest", *paths]:
            if missing := [path for path in paths if not path.startswith("-") and not (ROOT / path).exists()]:
                raise NotTaken(f"{command}: no {missing[0]}")
        case ["python", "-m", module, *rest]:
            _module(module, rest)
        case ["stream-engine", name, *rest]:
            _verb(name, rest)


def _module(module: str, rest: list[str]) -> None:
    """The command line of a module of the tests, read by its own parser."""
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:
        spec = None
    if spec is None:
        raise NotTaken(f"python -m {module}: no such module")
    program = import_module(f"{module}.__main__" if spec.submodule_search_locations else module)
    said = io.StringIO()
    read = argparse.ArgumentParser.parse_args

    def only_read(self, args=None, namespace=None):
        self.allow_abbrev = False
        raise _Parsed(read(self, args, namespace))

    with pytest.MonkeyPatch.context() as patched, contextlib.redirect_stderr(said):
        patched.setattr(argparse.ArgumentParser, "parse_args", only_read)
        patched.setattr("sys.argv", [module, *(_filled(word) for word in rest)])
        try:
            program.main()
        except _Parsed:
            return
        except SystemExit:
            raise NotTaken(f"python -m {module} {' '.join(rest)}: {said.getvalue().splitlines()[-1]}") from None
    raise AssertionError(f"{module} did not read its command line, and has run")


@cache
def of_verbs() -> frozenset[str]:
    """All options of all verbs."""
    verbs = [verb(name) for name in VERBS]
    inner = [each for group in verbs if isinstance(group, click.Group) for each in group.commands.values()]
    return frozenset(name for each in [*verbs, *inner] for option in each.params for name in option.opts)


def _verb(name: str, rest: list[str]) -> None:
    """A verb of the engine, read by its own command; places need not exist."""
    if name not in VERBS:
        raise NotTaken(f"stream-engine {name}: no such verb")
    command = verb(name)
    if isinstance(command, click.Group):
        inner = [word for word in rest if word in command.commands]
        command, rest = (command.commands[inner[0]], [w for w in rest if w != inner[0]]) if inner else (command, [])
    try:
        command.parse_args(click.Context(command, info_name=name, **command.context_settings), [*map(_filled, rest)])
    except click.MissingParameter:
        return  # a text names a verb with what it speaks of, and leaves the rest out
    except (click.UsageError, click.BadParameter) as error:
        if not re.search(r"does not exist|is not a|No such file", error.format_message()):
            raise NotTaken(f"stream-engine {name} {' '.join(rest)}: {error.format_message()}") from None


def _filled(word: str) -> str:
    return "1" if word in ("N", "NUMBER", "I") else word
