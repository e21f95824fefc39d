"""Pieces of Markdown that several pages use: folded items and paragraphs, no line above `WIDTH`."""

from textwrap import dedent, wrap

WIDTH = 118
MADE = "This page is generated from the code (`python -m deploy.manual`)."


def paragraph(text: str, indent: str = "") -> str:
    """Words folded to the width."""
    return "\n".join(
        wrap(
            text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
    )


def prose(text: str) -> str:
    """A docstring as Markdown: paragraphs folded anew, what is indented as a block of code."""
    parts = []
    for part in text.split("\n\n"):
        indented = all(line.startswith("    ") for line in part.splitlines() if line)
        parts.append(f"```text\n{dedent(part)}\n```" if indented else paragraph(" ".join(part.split())))
    return "\n\n".join(parts)


def item(text: str, level: int = 0) -> str:
    """An item of a list.

    >>> item("one"), item("two", 1)
    ('- one', '  - two')
    """
    first = "  " * level + "- "
    return "\n".join(
        wrap(
            text,
            WIDTH,
            initial_indent=first,
            subsequent_indent=" " * len(first),
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def code(value: object) -> str:
    """A word of code.

    >>> code(0.5)
    '`0.5`'
    """
    return f"`{value}`"
