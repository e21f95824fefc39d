"""Every command that a page names takes what it is given, and every section of measurements names its command.

Nothing is run: the command lines are read by their own parsers. `test_kept_tables.py` compares the figures themselves.
"""

import re

import pytest

from deploy.manual import DOCS
from deploy.manual import PAGES as MADE
from tests.benchmarks.__main__ import COMMANDS
from tests.conftest import ROOT
from tests.support.named_commands import NotTaken, check, named, of_verbs, options
from tests.support.tables import sections

MEASUREMENTS = DOCS / "measurements.md"
PAGES = {
    str(page.relative_to(ROOT)): page
    for page in [ROOT / "README.md", *sorted((ROOT / "stream_engine").rglob("*.md"))]
    if page not in {DOCS / made for made in MADE}  # what is made of the code cannot name what it has not
}
HEADINGS = [heading for heading, _ in sections(MEASUREMENTS)]
DECIDED = HEADINGS[HEADINGS.index("Studies that decided something") :]  # their programs are not kept


def faults(text: str) -> list[str]:
    """What the commands of a text, and the options that it names alone, are refused with."""
    found, commands = [], list(named(text))
    for command in commands:
        try:
            check(command)
        except NotTaken as wrong:
            found.append(str(wrong))
    for option in options(text):
        if option.split()[0] not in of_verbs() and not any(_takes(command, option) for command in commands):
            found.append(f"{option}: an option of no verb, and of no command here")
    return found


def _takes(command: str, option: str) -> bool:
    try:
        check(f"{command} {option}")
    except NotTaken:
        return False
    return True


@pytest.mark.parametrize("page", PAGES)
def test_commands_take_what_they_are_given(page):
    assert [fault for _, text in sections(PAGES[page]) for fault in faults(text)] == []


def test_every_section_of_measurements_says_what_makes_its_figures():
    for heading, text in sections(MEASUREMENTS):
        if re.search(r"\d", text.removeprefix(f"# {heading}")) and heading not in {"Measurements", *DECIDED}:
            assert list(named(text)), heading


def test_every_benchmark_that_is_kept_has_its_figures_and_every_table_says_whether_its_program_is():
    kept = "\n".join(text for heading, text in sections(MEASUREMENTS) if heading not in DECIDED)
    commands = list(named(kept))
    for word in COMMANDS:
        assert any(re.match(rf"(\S+=\S+ )*python -m tests\.benchmarks[. ]{word}\b", each) for each in commands), word
    assert dict(sections(MEASUREMENTS))[DECIDED[0]].count("not the programs") == 1
