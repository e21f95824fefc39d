"""The registry of verbs: what it says of a verb is true, and asking for help imports none."""

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

import stream_engine
from stream_engine.commands import GROUPS, VERBS, first_paragraphs, help_of, verb
from stream_engine.commands.command_line import cli
from stream_engine.data.threads import ONE_THREAD
from tests.conftest import ROOT
from tests.support.process import engine, process


def test_every_file_of_a_verb_is_registered():
    files = {path.stem for path in (ROOT / "stream_engine" / "commands").glob("*.py")} - {
        "__init__",
        "by_name",
        "command_line",
        "input_options",
        "refit_text",
    }
    assert files == {target.partition(":")[0].rpartition(".")[2] for target in VERBS.values()}
    assert {name.replace("-", "_") for name in VERBS} == files


def test_help_lists_each_verb_once_by_what_it_is_for():
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(VERBS)
    shown = CliRunner().invoke(cli, ["--help"]).output
    places = [shown.index(f"{title}:") for title in GROUPS]
    assert places == sorted(places)
    words = " ".join(shown.split())
    assert all(f"{name} {' '.join(text.split())}" in words for name, text in first_paragraphs().items())


@pytest.mark.parametrize("name", VERBS)
def test_the_registry_says_what_the_verb_says(name):
    assert verb(name).name == name
    assert help_of(verb(name)) == " ".join(first_paragraphs()[name].split())


def loaded(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after `code`."""
    program = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return set(out.splitlines())


def test_help_and_version_import_no_verb():
    for arguments in (["--help"], ["--version"]):
        modules = loaded(f"from stream_engine.__main__ import main\nassert main({arguments}) == 0")
        ours = {name for name in modules if name.startswith(("stream_engine.", "connectors"))}
        assert ours <= {
            "stream_engine.__main__",
            "stream_engine.commands",
            "stream_engine.commands.command_line",
            "stream_engine.data",
            "stream_engine.data.early_signals",
            "stream_engine.data.standard_streams",
            "stream_engine.data.threads",
        }
        assert "numpy" not in modules


def test_no_verb_imports_what_it_may_not_need():
    modules = loaded("from stream_engine.commands import VERBS, verb\nfor name in VERBS:\n    verb(name)")
    heavy = {"cvxpy", "kafka", "matplotlib", "pandas", "polars", "pyspark", "sklearn"}
    assert not heavy & modules
    modules = loaded("from stream_engine.commands import verb\nverb('inspect'), verb('export')")
    assert not {"numba", "river", "uvicorn", "scipy", *heavy} & modules
    modules = loaded("from stream_engine.commands import verb\nverb('run'), verb('demo'), verb('check-config')")
    assert not {"numba", "river", "uvicorn", "scipy", *heavy} & modules


def test_what_reads_a_state_loads_no_compiler(tmp_path):
    """Nothing is compiled to look at a state, to copy it or to ask; importing numba would take most of the time."""
    (tmp_path / "few.jsonl").write_text('{"anchor":"a","near":"b","far":"c"}\n{"anchor":"b","near":"a","far":"c"}\n')
    state = tmp_path / "state"
    engine("run", tmp_path / "few.jsonl", "--state", state, "--no-refits")
    for arguments in (
        ["inspect", "--state", state],
        ["inspect", "--state", state, "--json"],
        ["export", "summary", "--state", state, "--out", tmp_path / "out"],
        ["ask", "--state", state, "--strategy", "random", "--n", 1],
        ["export", "triplet_counts", "--state", state, "--out", tmp_path / "out"],
        ["backup", "--state", state, "--to", tmp_path / "copy"],
        ["dead-letters", "list", "--state", state],
    ):
        modules = loaded(f"from stream_engine.__main__ import main\nassert main({list(map(str, arguments))}) == 0")
        assert not {"numba", "llvmlite", "numpy.ma", "scipy", "sklearn"} & modules, arguments


@pytest.mark.parametrize(("given", "expected"), [("", 1), ("2", 2)])
def test_a_command_uses_one_thread_of_linear_algebra_unless_the_environment_says_otherwise(given, expected):
    say = """
import sys, threadpoolctl
from stream_engine.__main__ import main
sys.argv = ["stream-engine", "--version"]
assert main() == 0
import numpy, scipy.linalg
print({pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"})
"""
    kept = {name: value for name, value in os.environ.items() if name not in ONE_THREAD}
    environment = kept | ({"OPENBLAS_NUM_THREADS": given} if given else {})
    done = subprocess.run([sys.executable, "-c", say], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines()[-1] == str({min(expected, os.cpu_count() or 1)})


def test_the_version_is_that_of_the_package():
    assert process("--version").stdout == f"stream-engine, version {stream_engine.__version__}\n"
    assert stream_engine.__version__[0].isdigit()
