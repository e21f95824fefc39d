"""Pages of the manual, run as they stand: every block of code in its order, in one folder, as a reader would.

What a block is, its fence says:
- `console`: lines that begin with `$ ` are commands; the lines behind one are a part of what it prints, up to figures
  (`…` stands for whatever is left out). Behind `$ cat NAME` they are the file NAME, which is made of them.
- `python`: one script with the other blocks of the page; the comment behind a `print` is what it prints.
- `toml`: a file; `# NAME.toml` in its first line makes it.
- `text`: a drawing, a formula or a usage: nothing to run. A block that says nothing is `text`, or `sh` where it begins
  with a command.
- `sh`: a command with names of one's own in it; `tests/manual/test_tables.py` reads its words.
- `pycon`: from a docstring, where doctest runs it.
- `r`, `js`, `html`: other languages; a test of the page runs them where they can be had.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.process import ENVIRONMENT, engine

KINDS = {"console", "html", "js", "math", "python", "r", "toml", "text", "sh", "pycon"}
_FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```[ ]*$", re.S | re.M)
_COMMAND = re.compile(r"^(\$ )?(stream-engine|python -m|pip|make|curl|docker) ")
_SHELL = re.compile(r"[|&;<>*?`$]|^[A-Z_]+=")


class Block(NamedTuple):
    """A block of a page: its kind, its text."""

    kind: str
    text: str


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, in order."""
    return [Block(kind or _guessed(text), text) for kind, text in _FENCE.findall(page.read_text(encoding="utf-8"))]


def _guessed(text: str) -> str:
    return "sh" if _COMMAND.match(text) else "text"


class Command(NamedTuple):
    """A command of a `console` block, and the lines that it prints."""

    line: str
    prints: list[str]


def commands(text: str) -> list[Command]:
    """The commands of a `console` block."""
    found: list[Command] = []
    for line in text.replace("\\\n", "").splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:], []))
        elif found:
            found[-1].prints.append(line)
    return found


def run_page(page: Path, folder: Path, change: Callable[[str], str] = lambda line: line) -> None:
    """Run the blocks of a page in a folder. `change`: what stands elsewhere here, such as an address."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("error")
        for block in blocks(page):
            assert block.kind in KINDS, f"{page.name}: nobody knows how to run a block of kind {block.kind}"
            if block.kind == "console":
                for command in commands(block.text):
                    run_command(change(command.line), command.prints)
            elif block.kind == "python":
                run_python(change(block.text), names)
            elif block.kind == "toml":
                _keep(change(block.text), folder)


def _keep(text: str, folder: Path) -> None:
    tomllib.loads(text)
    if name := re.match(r"# ([\w-]+\.toml)\n", text):
        (folder / name[1]).write_text(text)


def run_python(text: str, names: dict[str, Any]) -> str:
    """Run a block of Python with the names of those before it; what it printed."""
    import matplotlib

    matplotlib.use("Agg")
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(text, "<page>", "exec"), names)
    told = [line.partition("  # ")[2].strip() for line in text.splitlines() if "print(" in line and "  # " in line]
    assert all(alike(line, said.getvalue()) for line in told), said.getvalue()
    return said.getvalue()


def run_command(line: str, prints: list[str]) -> None:
    """Run a command in the current folder; it prints these lines."""
    if made := re.fullmatch(r"cat ([\w./-]+)", line):
        if prints:
            Path(made[1]).write_text("\n".join(prints) + "\n")
        assert Path(made[1]).exists(), line
        return
    program, *arguments = shlex.split(line)
    if program == "stream-engine" and not _SHELL.search(line):
        done = engine(*arguments, status=None)
        status, said = done.returncode, done.stdout + done.stderr
    else:
        shown = re.sub(r"(^|\| |&& )(stream-engine|python)\b", rf"\1{sys.executable} \2", line)
        shown = shown.replace(f"{sys.executable} stream-engine", f"{sys.executable} -m stream_engine")
        shown = shown.replace(f"{sys.executable} python", sys.executable)
        ran = subprocess.run(
            ["bash", "-c", shown], env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, timeout=1200
        )
        status, said = ran.returncode, ran.stdout + ran.stderr
    assert status == 0, f"{line}\n{said}"
    for each in prints:
        assert alike(each, said), f"{line}\ndoes not print: {each}\nbut:\n{said}"


def alike(line: str, said: str) -> bool:
    """Whether a line was printed, up to figures and runs of blanks."""
    return all(_plain(part) in _plain(said) for part in line.split("…"))


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"-?[\d,.]*\d", "0", text)).strip()
