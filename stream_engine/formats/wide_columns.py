"""Tables with several questions per row: column names with placeholders, and the questions of a header.

`Q{n}_left` stands for Q1_left, Q2_left and so on; `*` for a comma or another sign; `{a}` alone for the text of that
placeholder in the header. A question without an answer was not asked of that participant, and is excluded.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from stream_engine.formats.event_fields import filter_of
from stream_engine.formats.options import EventOptions, UnreadableHeader

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_ANSWERS = ("chosen", "odd", "central", "near", "ranked")


class WideQuestion(NamedTuple):
    """One question of each row: where its fields stand, and what of it the header says."""

    options: EventOptions
    constants: dict[str, str]  # name of a column that is none -> its text in every row


def has_placeholders(options: EventOptions) -> bool:
    """Whether a table is wide by these options."""
    return any(map(_PLACEHOLDER.search, (*sum(options.columns.values(), ()), *options.where)))


def wide_questions(options: EventOptions, names: Sequence[str]) -> list[WideQuestion]:
    """The questions that a table with these columns has, in their order there; the options alone, if it is not wide.

    Raises `UnreadableHeader` where no columns fit.

    >>> options = EventOptions("pick", {"anchor": ("{a}",), "shown": ("{b}", "{c}"), "chosen": ("{a}_{b}_{c}",)})
    >>> [question.constants for question in wide_questions(options, ["id", "cat_dog_owl", "owl_cat_dog"])]
    [{'{a}': 'cat', '{b}': 'dog', '{c}': 'owl'}, {'{a}': 'owl', '{b}': 'cat', '{c}': 'dog'}]
    """
    if not has_placeholders(options):
        return [WideQuestion(options, {})]
    filters = {key: filter_of(key, wanted).source for key, wanted in options.where.items()}
    used = dict.fromkeys(name for name in (*sum(options.columns.values(), ()), *filters.values()))
    patterns = [name for name in used if _PLACEHOLDER.search(name)]
    longer = {variable for name in patterns if not _is_constant(name) for variable in _PLACEHOLDER.findall(name)}
    constants = [name for name in patterns if _is_constant(name) and name[1:-1] in longer]
    names_of = {name: matches(name, names) for name in patterns if name not in constants}
    bindings = {
        binding: None for name in names_of for binding in names_of[name] if {key for key, _ in binding} >= longer
    }  # those of a name that has all placeholders, in the order of the columns
    questions = []
    for binding in bindings:
        values = dict(binding)
        real = {
            name: bindings.get(tuple((key, values[key]) for key in sorted(set(_PLACEHOLDER.findall(name)))))
            for name, bindings in names_of.items()
        }
        if None in real.values():
            continue
        columns = {field: tuple(real.get(name) or name for name in inputs) for field, inputs in options.columns.items()}
        where = {
            (real.get(source) or source) + key.removeprefix(source): options.where[key]
            for key, source in filters.items()
        }
        answer = next((columns[field][0] for field in _ANSWERS if field in columns), None)
        if answer is not None:
            where.setdefault(f"{answer}!=", "")
        constants_here = {name: values[name[1:-1]] for name in constants}
        questions.append(WideQuestion(options._replace(columns=columns, where=where), constants_here))
    if not questions:
        shown = ", ".join(names_of)
        raise UnreadableHeader(f"no columns are called {shown}; the header has {', '.join(names)[:200]}")
    return questions


def matches(pattern: str, names: Sequence[str]) -> dict[tuple[tuple[str, str], ...], str]:
    """What the placeholders stand for in the names that fit a pattern, and these names.

    >>> matches("Q{n}_left", ["Q1_left", "Q2_left", "Q1_right"])
    {(('n', '1'),): 'Q1_left', (('n', '2'),): 'Q2_left'}
    """
    parts = re.split(r"(\{\w+\}|\*)", pattern)
    variables: set[str] = set()
    expression = ""
    for part in parts:
        variable = part[1:-1] if _PLACEHOLDER.fullmatch(part) else ""
        if not variable:
            expression += r"\W+" if part == "*" else re.escape(part)
        elif variable in variables:
            expression += f"(?P={variable})"
        else:
            variables.add(variable)
            expression += f"(?P<{variable}>{'[0-9]+' if variable == 'n' else '.+?'})"
    fitting = ((re.fullmatch(expression, name, re.DOTALL), name) for name in names)
    names_by_binding: dict[tuple[tuple[str, str], ...], str] = {}
    for match, name in fitting:
        if match:
            names_by_binding.setdefault(tuple(sorted(match.groupdict().items())), name)
    return names_by_binding


def _is_constant(name: str) -> bool:
    return _PLACEHOLDER.fullmatch(name) is not None
