"""The page of settings: every table and key of the configuration, its type, its default and what it means."""

import ast
import inspect
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect as types

from deploy.manual.markdown import MADE, code, item, paragraph
from stream_engine.alignment.feature_files import FeatureSpec
from stream_engine.commands import verb
from stream_engine.input import settings
from stream_engine.kernel_learning.auxiliary_files import KernelSpec

INTRODUCTION = f"""# Settings

{MADE}

A configuration file is TOML: top-level keys, then tables. You can also set every key with an environment variable
(`STREAM_ENGINE__SNAPSHOT__KEEP=5`), and many with an option of `run`. The command line takes precedence over the
environment, the environment over the file, and the file over the default. `stream-engine check-config FILE` validates a
file and prints the effective settings.
"""


def page() -> str:
    """The whole page."""
    options = options_of_keys()
    lines = [INTRODUCTION, "## Top level", ""]
    tables = []
    for field in msgspec.structs.fields(settings.Settings):
        if is_table(field.type):
            tables.append((field.encode_name, field.type))
        else:
            lines.append(_key(settings.Settings, field, "", options))
    for name, table in tables:
        lines += ["", f"## [{name}]", "", paragraph(inspect.getdoc(table) or ""), ""]
        lines += [_key(table, field, f"{name}.", options) for field in msgspec.structs.fields(table)]
    lines += ["", "## [kernels.NAME]", "", paragraph(_first_paragraph(KernelSpec)), ""]
    lines += [_plain_key(field) for field in msgspec.structs.fields(KernelSpec)]
    lines += ["", "## [features.NAME]", "", paragraph(_first_paragraph(FeatureSpec)), ""]
    lines += [_plain_key(field) for field in msgspec.structs.fields(FeatureSpec)]
    lines += ["", "## [kafka]", "", paragraph(f"{meanings(settings.Settings)['kafka'].capitalize()}.")]
    return "\n".join(lines) + "\n"


def is_table(of: Any) -> bool:
    """Whether a key holds a table of keys that are known."""
    return isinstance(of, type) and issubclass(of, msgspec.Struct)


def meanings(struct: type) -> dict[str, str]:
    """Field -> the comment behind it in the code."""
    source = inspect.getsource(struct)
    lines = source.splitlines()
    body = ast.parse(source).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for node in body.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.end_lineno:
            found[node.target.id] = lines[node.end_lineno - 1].partition("  # ")[2].strip()
    return found


def options_of_keys() -> dict[str, str]:
    """Key -> the option of `run` that sets it."""
    return {
        (parameter.name or "").replace("__", "."): parameter.opts[-1]
        for parameter in verb("run").params
        if parameter.param_type_name == "option"
    }


def _key(table: type, field: Any, prefix: str, options: dict[str, str]) -> str:
    if field.name in ("kernels", "features", "kafka"):
        return item(f"`{field.encode_name}`: a table (see below).")
    says = meanings(table)[field.name]
    option = options.get(prefix + field.encode_name)
    by = f" Option `{option}`." if option else ""
    return item(f"`{field.encode_name}` ({type_of(field)}; default {default_of(field)}): {says}.{by}")


def _plain_key(field: Any) -> str:
    required = field.default is msgspec.NODEFAULT and field.default_factory is msgspec.NODEFAULT
    return item(
        f"`{field.encode_name}` ({type_of(field)}; {'required' if required else 'default ' + default_of(field)})"
    )


def default_of(field: Any) -> str:
    """A default as TOML has it.

    >>> default_of(msgspec.structs.fields(settings.SnapshotSettings)[1])
    '`60.0`'
    """
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return code(str(value).lower())
    if isinstance(value, str):
        return code(f'"{value}"')
    if isinstance(value, tuple | list):
        return code("[" + ", ".join(f'"{each}"' if isinstance(each, str) else str(each) for each in value) + "]")
    return code("{}" if value == {} else value)


def type_of(field: Any) -> str:
    """What a key takes, in words; choices are listed.

    >>> type_of(msgspec.structs.fields(settings.LogSettings)[0])
    '`"json"` or `"text"`'
    """
    return " or ".join(_parts(types.type_info(field.type))) or "anything"


def _parts(info: Any) -> Iterator[str]:
    if isinstance(info, types.UnionType):
        for each in info.types:
            yield from _parts(each)
    elif isinstance(info, types.LiteralType):
        yield from sorted(code(f'"{value}"') for value in info.values)
    elif isinstance(info, types.Metadata):
        yield from _parts(info.type)
    elif isinstance(info, types.NoneType):
        return
    elif isinstance(info, types.IntType):
        yield "whole number" + _bounds(info)
    elif isinstance(info, types.FloatType):
        yield "number" + _bounds(info)
    elif isinstance(info, types.StrType):
        yield "text" + (f" of at least {info.min_length} characters" if info.min_length else "")
    elif isinstance(info, types.BoolType):
        yield "true or false"
    elif isinstance(info, types.VarTupleType | types.ListType):
        yield "list of " + " or ".join(_parts(info.item_type))
    elif isinstance(info, types.TupleType):
        yield "list of " + ", ".join(" or ".join(_parts(each)) for each in info.item_types)
    elif isinstance(info, types.StructType | types.DictType):
        yield "table"
    else:
        yield "anything"


def _bounds(info: Any) -> str:
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    told = [f"{sign} {bound:g}" for name, sign in signs.items() if (bound := getattr(info, name)) is not None]
    return f" {', '.join(told)}" if told else ""


def _first_paragraph(of: type) -> str:
    return " ".join((inspect.getdoc(of) or "").split())
