"""The commands of the README and of the tour."""

import re

from tests.conftest import ROOT

README = (ROOT / "README.md").read_text()
TOUR = (ROOT / "stream_engine" / "docs" / "tour.md").read_text()


def commands_of(page: str) -> list[str]:
    """The lines of its console blocks that begin with `$ `."""
    return [
        line.removeprefix("$ ")
        for block in re.findall(r"```console\n(.*?)```", page, re.S)
        for line in block.replace("\\\n", "").splitlines()
        if line.startswith("$ ")
    ]


COMMANDS = commands_of(TOUR)
KAFKA = [
    command for command in dict.fromkeys(COMMANDS + commands_of(README)) if "kafka://" in command
]  # tests/kafka/test_engine.py runs them on a real broker
