"""The pages of the reference are what the code says now, and leave nothing out."""

import re
from pathlib import Path

import click
import msgspec
import pytest
import yaml

import stream_engine
from deploy.manual import DOCS, PAGES, text_of
from deploy.manual.estimators import documented
from deploy.manual.http import COLLECT
from deploy.manual.refits import parameters
from deploy.manual.settings import is_table, meanings
from stream_engine import estimators
from stream_engine.commands import VERBS, verb
from stream_engine.data.comparisons import EVENT_TYPES, REASONS
from stream_engine.formats.event_fields import OPTIONAL, PAIR_COLUMNS, SHAPES, VOTES
from stream_engine.input.settings import Settings
from stream_engine.refits import REFITS, refit_module
from stream_engine.service.context import HttpContext
from stream_engine.service.http.admin_routes import admin_routes
from stream_engine.service.http.paths import ADMIN, READ
from stream_engine.service.metrics import Metrics
from tests.conftest import ROOT

ROUTE = re.compile(r'(?:Route|Mount)\(f?"(/[^"]*)"')


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_what_the_code_says(page):
    assert (DOCS / page).read_text(encoding="utf-8") == text_of(page), "python -m deploy.manual writes it"


def test_every_verb_and_option_is_there():
    page = text_of("reference/commands.md")
    for name in VERBS:
        assert f"\n## {name}\n" in page
        for command in _with_inner(verb(name)):
            for option in command.params:
                if isinstance(option, click.Option) and not option.hidden:
                    assert option.help, (name, option.name)
                    assert re.search(rf"^- `{option.opts[0]}`", page, re.M), (name, option.opts)


def test_a_docstrings_parts_become_markdown():
    text = "Sum.\n\nNotes\n-----\nExact.\n\n>>> total()\n0.0"
    assert documented(text) == "Sum.\n\n**Notes**\n\nExact.\n\n```pycon\n>>> total()\n0.0\n```"


def _with_inner(command):
    yield command
    if isinstance(command, click.Group):
        yield from command.commands.values()


def test_every_setting_is_there_with_its_meaning():
    page = text_of("reference/settings.md")
    for field in msgspec.structs.fields(Settings):
        assert f"[{field.encode_name}" in page or f"- `{field.encode_name}` (" in page
        if is_table(field.type):
            section = page.partition(f"\n## [{field.encode_name}]\n")[2].partition("\n## ")[0]
            told = meanings(field.type)
            for key in msgspec.structs.fields(field.type):
                assert told[key.name], f"{field.name}.{key.name} has no comment that says what it means"
                assert f"- `{key.encode_name}` (" in section
        elif field.name not in ("kernels", "kafka"):
            assert meanings(Settings)[field.name], f"{field.name} has no comment that says what it means"


@pytest.mark.parametrize("kind", REFITS)
def test_every_parameter_of_a_refit_is_there_with_its_meaning(kind):
    section = text_of("reference/refits.md").partition(f"\n## {kind}\n")[2].partition("\n## ")[0]
    struct = refit_module(kind).Params
    for field in msgspec.structs.fields(struct):
        assert parameters(struct).get(field.name), f"{kind}: the docstring of Params does not say what {field.name} is"
        assert f"- `{field.encode_name}` (" in section


def test_every_public_name_and_parameter_is_there():
    page = text_of("reference/estimators.md")
    for room in (stream_engine, estimators):
        for name in room.__all__:
            if callable(getattr(room, name)):
                assert f"\n### {name}\n" in page
    for name in estimators.__all__:
        estimator = getattr(estimators, name)
        if hasattr(estimator, "get_params"):
            section = page.partition(f"\n### {name}\n")[2].partition("\n### ")[0]
            for parameter in estimator._get_param_names():
                assert f"`{parameter}`" in section, f"{name}: the docstring does not say what {parameter} is"


def test_every_instrument_is_there():
    page = text_of("reference/metrics.md")
    named = set(re.findall(r"^- `(stream_engine_\w+?)(?:_total|_info)?` ", page, re.M))
    held = {
        each._name
        for each in Metrics().registry._collector_to_names
        if getattr(each, "_name", "").startswith("stream_engine_")
    }
    assert named == {re.sub(r"_info$", "", name) for name in held} and len(named) > 35


def test_every_path_is_there_and_no_other():
    served = set()
    for path in (ROOT / "stream_engine").rglob("*.py"):
        served |= set(ROUTE.findall(path.read_text(encoding="utf-8")))
    assert served - {"/admin", "/{name}", "/{path:path}"} == set(READ)
    collect = set()
    for path in (ROOT / "stream_engine" / "collect").rglob("*.py"):
        collect |= set(re.findall(r'\(\s*"(/[^"]*)",\s', path.read_text(encoding="utf-8")))
    assert collect - {"/{path:path}"} == set(COLLECT)
    routes = admin_routes(HttpContext(Path(), Metrics(), lambda: None))
    assert {f"/admin{route.path}" for route in routes} == set(ADMIN)


def test_every_type_and_field_of_an_event_is_there():
    page = text_of("reference/events.md")
    assert all(f"\n| `{kind}` |" in page for kind in EVENT_TYPES) and all(f"- `{code}`: " in page for code in REASONS)
    told = set(re.findall(r"`(\w+)`", page))
    fields = {shape.name for shapes in SHAPES.values() for shape in shapes} | {*OPTIONAL, *VOTES, "type"}
    assert fields | {column for pair in PAIR_COLUMNS.values() for column in pair} <= told
    assert "--columns catch=passed" in page


def test_every_alert_is_there_with_what_to_do():
    rules = yaml.safe_load((ROOT / "deploy" / "prometheus" / "alerts.yml").read_text())["groups"][0]["rules"]
    page = text_of("reference/alerts.md")
    for rule in rules:
        section = page.partition(f"\n## {rule['alert']}\n")[2].partition("\n## ")[0]
        assert " ".join(rule["annotations"]["description"].split()) in " ".join(section.split())
        assert rule["labels"]["severity"] in section and f"#{rule['alert'].lower()})" in section
        assert "".join(rule["expr"].split()) in "".join(section.split())
        assert not rule.get("for") or f"for {rule['for']}:" in section
    assert page.count("\n## ") == len(rules)
