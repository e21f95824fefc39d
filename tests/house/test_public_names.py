"""Names that users and scripts rely on import from where the documentation says, wherever the code lives."""

import subprocess
import sys
from importlib import import_module

import pytest

import stream_engine
from tests.house.public_names import PUBLIC


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_import(module):
    missing = [name for name in PUBLIC[module] if not hasattr(import_module(module), name)]
    assert not missing


@pytest.mark.parametrize("module", ["stream_engine", "stream_engine.kernels", "stream_engine.estimators"])
def test_a_public_name_has_an_example_that_doctest_runs(module):
    """In its own docstring, in a file below the folders whose docstrings pytest runs."""
    room = import_module(module)
    named = {name: getattr(room, name) for name in {*getattr(room, "__all__", ()), *PUBLIC[module]}}
    shown = {name: value for name, value in named.items() if callable(value)}
    assert len(shown) > 5
    assert [name for name, value in shown.items() if ">>> " not in (value.__doc__ or "")] == []
    assert {value.__module__.partition(".")[0] for value in shown.values()} == {"stream_engine"}


def test_submodules_come_with_the_package():
    """`from stream_engine import kernels, estimators, refits` in a fresh interpreter, as scripts do."""
    code = "from stream_engine import Engine, estimators, kernels, refits, snapshot; print(kernels.k1.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "k1\n"


def test_an_unknown_name_is_said():
    with pytest.raises(AttributeError, match="has no attribute 'k3'"):
        _ = stream_engine.k3
