"""The folders of the studies and sessions whose documents are approved, as their commands left them."""

import io
import re
import shlex
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from stream_engine.state.engine import Engine
from stream_engine.state.store import Store
from tests.support.approved_sessions import SESSIONS
from tests.support.approved_studies import WORLDS
from tests.support.process import engine, jsonl
from tests.support.session_store import once


def made(folder: Path, name: str) -> str:
    """Lay out a world in a folder as its commands left it; what they printed."""
    said, files = once(_made, name)
    with tarfile.open(fileobj=io.BytesIO(files)) as packed:
        packed.extractall(folder, filter="tar")
    return said


def _made(name: str) -> tuple[str, bytes]:
    packed, world = io.BytesIO(), (WORLDS | SESSIONS)[name]
    with TemporaryDirectory(prefix="approved-") as folder:
        at = Path(folder)
        for file, content in world.files().items():
            if isinstance(content, str):
                (at / file).write_text(content)
            else:
                jsonl(at / file, content)
        said = "\n".join(line for line in typed(at, world.commands) if not any(each in line for each in world.without))
        with tarfile.open(fileobj=packed, mode="w") as archive:
            archive.add(folder, ".")
    return said, packed.getvalue()


SHELL = ("cp ", "rm ", "echo ", "printf ", "sed ", "truncate ")  # what the shell does
BEGINNING = re.compile(r"\[info +\] (dead letters|run started) ")  # lines that say on what machine


def typed(folder: Path, commands: tuple[str, ...]) -> Iterator[str]:
    """What commands print, each behind its line."""
    for line in commands:
        if line.startswith("cat "):
            file = folder / line.removeprefix("cat ")
            yield from (f"$ {line}", *(file.read_text().splitlines() if file.exists() else ["! no such file"]), "")
            continue
        if line.startswith(SHELL):
            subprocess.run(line, shell=True, check=True, cwd=folder)
            yield f"$ {line}"
            continue
        if line.startswith("topic "):
            _of_a_topic(folder, *line.split()[1:])
            yield f"# {line}"
            continue
        done = engine(*shlex.split(line), status=None, cwd=folder)
        yield f"$ stream-engine {line}"
        if done.returncode:
            yield f"exit status {done.returncode}"
        yield from done.stdout.splitlines()
        yield from (f"! {text}" for text in done.stderr.splitlines() if not BEGINNING.search(text))
        yield ""


def _of_a_topic(folder: Path, state: str, first: str) -> None:
    """Let a state have read partitions of a topic `votes`, from the number `first` on, where it has read files."""
    store = Store(folder / state)
    known = Engine.restore(store.named("latest"))
    known.positions = {f"votes/{int(first) + at}": each for at, each in enumerate(known.positions.values())}
    store.replace(known.snapshot())
