"""The page of the command line: every verb with its arguments, options and defaults."""

from collections.abc import Iterator
from textwrap import wrap

import click

from deploy.manual.markdown import MADE, WIDTH, item, paragraph
from stream_engine.commands import VERBS, verb

INTRODUCTION = f"""# Command line

{MADE}

`stream-engine COMMAND --help` shows the same. Exit status: 0 success; 1 failure at run time; 2 invalid arguments or
configuration. Errors are one line on standard error; `--debug` before the command shows a traceback.
"""


def page() -> str:
    """The whole page."""
    lines = [INTRODUCTION]
    for name in VERBS:
        lines += [f"## {name}", "", *_verb(name, verb(name)), ""]
    return "\n".join(lines)


def _verb(name: str, command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=f"stream-engine {name}")
    usage = wrap(" ".join(command.collect_usage_pieces(context)).replace("|", " | "), WIDTH - 20)
    yield "```text"
    yield f"{context.command_path} " + "\n    ".join(usage)
    yield "```\n"
    for part in (command.help or "").split("\n\n"):
        yield paragraph(" ".join(part.split()).replace("\b", ""))
        yield ""
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            inner = command.get_command(context, each)
            if inner is not None:
                yield f"### {name} {each}\n"
                yield from _verb(f"{name} {each}", inner)
    yield from (option(context, each) for each in command.params if isinstance(each, click.Option) and not each.hidden)


def option(context: click.Context, of: click.Option) -> str:
    """An option's line: its names, what it takes, what it does, its default.

    >>> option(click.Context(click.Command("x")), click.Option(["--n", "-n"], type=int, default=3, help="How many."))
    '- `--n`, `-n` `INTEGER`: How many. Default: `3`.'
    """
    names = ", ".join(f"`{name}`" for name in [*of.opts, *of.secondary_opts])
    takes = "" if of.is_flag else f" `{of.make_metavar(context)}`"
    if isinstance(of.type, click.Choice) and of.metavar is None:
        takes = " " + " or ".join(f"`{choice}`" for choice in of.type.choices)
    text = f"{names}{takes}: {' '.join((of.help or '').split())}"
    default = of.default
    told = isinstance(default, str | int | float) and not isinstance(default, bool) and not of.is_flag
    if told and "efault" not in (of.help or ""):
        text += f" Default: `{default}`."
    if of.multiple and "repeat" not in (of.help or "").lower():
        text += " Can be repeated."
    if of.required:
        text += " Required."
    return item(text)
