"""The verbs of the command line: one verb, one file, which holds its options and calls its room.

A verb's file has `command`, a click command. It is registered here and imported when it is used: `--help` lists all
verbs and imports none, so that it costs what click costs.
"""

import re
from pathlib import Path
from typing import Any

import click

from stream_engine.data import registered

# verb -> "module:attribute"
VERBS = {
    "run": "stream_engine.commands.run:command",
    "preview": "stream_engine.commands.preview:command",
    "export": "stream_engine.commands.export:command",
    "inspect": "stream_engine.commands.inspect:command",
    "refit": "stream_engine.commands.refit:command",
    "check-config": "stream_engine.commands.check_config:command",
    "dead-letters": "stream_engine.commands.dead_letters:command",
    "demo": "stream_engine.commands.demo:command",
    "report": "stream_engine.commands.report:command",
    "produce": "stream_engine.commands.produce:command",
    "merge": "stream_engine.commands.merge:command",
    "warm-up": "stream_engine.commands.warm_up:command",
    "ask": "stream_engine.commands.ask:command",
    "predict": "stream_engine.commands.predict:command",
    "align": "stream_engine.commands.align:command",
    "collect": "stream_engine.commands.collect:command",
    "spark-counts": "stream_engine.commands.spark_counts:command",
    "verify": "stream_engine.commands.verify:command",
    "backup": "stream_engine.commands.backup:command",
    "seek": "stream_engine.commands.seek:command",
    "forget": "stream_engine.commands.forget:command",
}
# how `--help` lists them
GROUPS = {
    "Start here": ("preview", "report", "run", "collect", "demo"),
    "Results of a state": ("inspect", "export", "predict", "align", "ask", "refit"),
    "Streams": ("check-config", "produce", "merge", "spark-counts", "warm-up"),
    "Care and repair": ("verify", "backup", "dead-letters", "forget", "seek"),
}

state_option = click.option("--state", required=True, metavar="DIR", help="State directory.")
raw_option = click.option(
    "--raw", is_flag=True, help="Write texts in CSV unchanged, even those that a spreadsheet would run as formulas."
)
snapshot_option = click.option(
    "--snapshot", default="latest", metavar="N|latest", help="Snapshot to read. Default: the newest."
)


def verb(name: str) -> click.Command:
    """The command registered under `name`."""
    return registered(VERBS[name])


_FIRST_PARAGRAPH = re.compile(r'^def command\(.*?\) -> None:\n    """(.*?)(?:\n\n|""")', re.DOTALL | re.MULTILINE)


def first_paragraphs() -> dict[str, str]:
    """verb -> the first paragraph of its help, read from its file here; a verb without one is imported for it."""
    files = {name: Path(__file__).with_name(f"{name.replace('-', '_')}.py") for name in VERBS}
    texts = {name: file.read_text("utf-8") for name, file in files.items() if file.is_file()}
    return {name: match[1] for name, text in texts.items() if (match := _FIRST_PARAGRAPH.search(text))}


class Verbs(click.Group):
    """A group whose commands are those of `VERBS`, each imported when it is asked for.

    `commands`, where click looks for names that are like a mistyped one, holds stand-ins with the first paragraphs.
    """

    def __init__(self, *arguments: Any, **more: Any):
        super().__init__(*arguments, **more)
        self.commands.update((name, click.Command(name, help=text)) for name, text in first_paragraphs().items())

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for names in GROUPS.values() for name in names] + sorted(_ungrouped())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name; None makes click say that there is none."""
        return verb(cmd_name) if cmd_name in VERBS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs by what they are for, with their first paragraphs, without importing them."""
        width = max(map(len, VERBS))
        more = {"More": tuple(sorted(_ungrouped()))} if _ungrouped() else {}
        for title, names in (GROUPS | more).items():
            listed = [self.commands[name] if name in self.commands else verb(name) for name in names]
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), help_of(command)) for name, command in zip(names, listed)])


def help_of(command: click.Command) -> str:
    """The first paragraph of a command's help."""
    return (command.help or "").partition("\n\n")[0].replace("\n", " ")


def _ungrouped() -> set[str]:
    return VERBS.keys() - {name for names in GROUPS.values() for name in names}
