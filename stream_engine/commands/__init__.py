"""The verbs of the command line: one verb, one file, which holds its options and calls its room.

A verb's file has `command`, a click command. It is registered here and imported when it is used: `--help` lists all
verbs and imports none, so that it costs what click costs.
"""

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
# verb -> the first sentence of its help; a verb that is not here is imported for it
FIRST_SENTENCES = {
    "run": "Read events from SOURCE..., take snapshots, fit models, and serve results.",
    "preview": "Show how the first events of files would be read, and point out likely problems.",
    "export": "Export results as files for NumPy, pandas, R and others: all, or those named in WHAT.",
    "inspect": "Show what a state holds: data quality, prediction accuracy, agreement, clusters, what is missing.",
    "refit": "Fit one model to a published snapshot, in the foreground.",
    "check-config": "Validate a configuration file and print the effective settings.",
    "dead-letters": "Show rejected events: grouped by reason (list), or one by one (show).",
    "demo": "Analyse a small survey and a stream of simulated answers about handwritten digits.",
    "report": "Write a self-contained HTML report of a state, or of SOURCE..., which it first reads as `run --guard "
    "off` does.",
    "produce": "Send files of events to a topic.",
    "merge": "Sum states that read disjoint partitions, or redistribute them over N shards.",
    "warm-up": "Compile all kernels in advance, so that a run starts at full speed.",
    "ask": "Choose the questions to ask next and write them as JSON lines, sorted by priority.",
    "predict": "Predict the answers to questions: the probability that the first of two objects, or pairs, is nearer.",
    "align": "Test which feature sets (of networks, pixels, ratings) predict people's answers, and learn transforms.",
    "collect": "Serve a study: ask participants at /ask and update models with their answers, until SIGTERM or SIGINT.",
    "spark-counts": "Count events on Spark and write deltas to DIR for `run deltas://DIR`.",
    "seek": "Move the position in PARTITION to OFFSET, or N records forward with +N. Skipped records count as lost.",
    "verify": "Check every snapshot, artifact and dead letter; with SOURCE..., also recount and report differences.",
    "backup": "Make a consistent copy of a state, even while a run is writing to it.",
    "forget": "Permanently delete an object or a participant: counts, name, label, dead letters, snapshots.",
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
snapshot_option = click.option("--snapshot", default="latest", metavar="N|latest", help="Snapshot to read.")


def verb(name: str) -> click.Command:
    """The command registered under `name`."""
    return registered(VERBS[name])


class Verbs(click.Group):
    """A group whose commands are those of `VERBS`, each imported when it is asked for.

    `commands`, where click looks for names that are like a mistyped one, holds stand-ins with the first sentences.
    """

    def __init__(self, *arguments: Any, **more: Any):
        super().__init__(*arguments, **more)
        self.commands.update((name, click.Command(name, help=text)) for name, text in FIRST_SENTENCES.items())

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for names in GROUPS.values() for name in names] + sorted(_ungrouped())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name; None makes click say that there is none."""
        return verb(cmd_name) if cmd_name in VERBS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs by what they are for, with their whole first sentences, without importing them."""
        width = max(map(len, VERBS))
        more = {"More": tuple(sorted(_ungrouped()))} if _ungrouped() else {}
        for title, names in (GROUPS | more).items():
            listed = [self.commands[name] if name in self.commands else verb(name) for name in names]
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), help_of(command)) for name, command in zip(names, listed)])


def help_of(command: click.Command) -> str:
    """The first sentence of a command's help, whole."""
    return (command.help or "").partition("\n\n")[0].replace("\n", " ")


def _ungrouped() -> set[str]:
    return VERBS.keys() - {name for names in GROUPS.values() for name in names}
