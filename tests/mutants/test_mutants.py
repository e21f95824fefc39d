"""The tool itself: in a tiny package the killed, the survived and the equivalent are told apart, in a kernel too."""

import ast
import json
import tomllib

import pytest

from tests.mutants.__main__ import EQUIVALENT as EXPLAINED
from tests.mutants.__main__ import ROOT, chosen, main
from tests.mutants.changes import Gone, mutants, parsed, planted
from tests.mutants.names import Names
from tests.mutants.reach import Reach

KERNEL = """from numba import njit

TIMES = 2


@njit
def product(x):
    return x * TIMES


def within(x, most):
    return product(x) if x <= most else -x


def never(x):
    return not x
"""
SIGNS = """def below(x):
    return x < 0


def opposite(x):
    '''
    >>> opposite(True)
    False
    '''
    return not x
"""
TEST = """import subprocess
import sys

from stream_engine.tiny import signs, sums


def test_twice_three():
    assert sums.within(3, 5) == 6


def test_in_a_process():
    code = "from stream_engine.tiny import signs; exit(not signs.below(-3))"
    assert subprocess.call([sys.executable, "-c", code]) == 0


def test_that_fails_by_itself():
    import os

    assert os.environ.get("COVERAGE_PROCESS_START")
    sums.within(7, 5)
"""
PYPROJECT = """[tool.pytest.ini_options]
pythonpath = ["."]
addopts = ["--import-mode=importlib", "--doctest-modules"]
"""
EQUIVALENT = """[["stream_engine/tiny/sums.py"]]
text = "return product(x) if x <= most else -x"
change = "<= -> <"
why = "planted"
"""


def test_killed_survived_and_equivalent_are_told_apart(tmp_path, capfd, monkeypatch):
    for name, text in {
        "stream_engine/__init__.py": "",
        "stream_engine/tiny/__init__.py": "",
        "stream_engine/tiny/sums.py": KERNEL,
        "stream_engine/tiny/signs.py": SIGNS,
        "tests/tiny/test_sums.py": TEST,
        "tests/tiny/test_that_cannot_be_collected.py": "import nothing.of_this.name",
        "pyproject.toml": PYPROJECT,
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    (tmp_path / "equivalent.toml").write_text(EQUIVALENT)
    assert main(["--seconds", "60", "--jobs", "1"], tmp_path, tmp_path / "equivalent.toml") == 1
    said = capfd.readouterr().out
    rows = [json.loads(line) for line in (tmp_path / ".cache/mutants/results.jsonl").read_text().splitlines()]
    outcomes = {(row["file"].split("/")[-1], row["line"], row["change"]): row["outcome"] for row in rows}
    assert outcomes == {
        ("sums.py", 3, "2 -> 3"): "killed",  # what the kernel holds
        ("sums.py", 8, "* -> +"): "killed",  # in the kernel
        ("sums.py", 12, "<= -> >"): "killed",
        ("sums.py", 12, "- -> nothing"): "survived",  # the only test that runs it fails on the code as it is
        ("sums.py", 16, "not -> nothing"): "no test",
        ("signs.py", 2, "< -> <="): "survived",
        ("signs.py", 2, "< -> >="): "killed",  # in another process, which need not import numba
        ("signs.py", 2, "0 -> 1"): "survived",
        ("signs.py", 10, "not -> nothing"): "killed",  # by a doctest
    }
    assert "survived  stream_engine/tiny/sums.py:12  - -> nothing" in said
    assert "| tiny | 10 | 10 | 5 | 0 | 1 | 3 | 1 | 56% |" in said
    assert main(["--seconds", "60", "--jobs", "1"], tmp_path, tmp_path / "equivalent.toml") == 1
    assert "1/" not in capfd.readouterr().out  # all is kept: nothing is run again


def test_every_change_keeps_the_lines_and_reads_otherwise():
    for mutant in mutants("sums.py", KERNEL):
        changed = mutant.applied(KERNEL)
        assert changed.count("\n") == KERNEL.count("\n")
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(KERNEL))
        assert changed.splitlines()[mutant.line - 1] != KERNEL.splitlines()[mutant.line - 1]


@pytest.mark.parametrize(
    "text, changes",
    {
        "x = a < b": ["< -> <=", "< -> >="],
        "x = a not in b": ["not in -> in"],
        "x = not a": ["not -> nothing"],
        "x = a and b and c": ["and -> or", "and -> or #2"],
        "x = f(a, b, c)": ["a, b -> b, a", "b, c -> c, b"],
        "x = f(k=a, l=b)": ["k, l -> l, k"],
        "x = a.mean()": ["mean -> median"],
        "x = max(a, b)": ["max -> min"],
        "x = a[1:b]": ["1 -> nothing", "1 -> 2", "b -> nothing"],
        "x += é.a": ["x += é.a -> pass", "+ -> -"],
        "if a:\n    return": ["a -> (not (a))", "a -> False", "return -> pass"],
        "assert a < 1": [],
        "prefetch(a, 0)": [],
        "x: int = 0": ["0 -> 1"],
        "x = a / b": ["/ -> *", "b -> (b) + 1"],
        "x = a[-1]": ["- -> nothing", "1 -> 2", "[-1] -> [0]"],
        "x = sorted(a)": ["sorted -> sorted[::-1]"],
        "x = {'a': c, 'b': d}": ["'a': ... -> nothing", "'b': ... -> nothing", "'a', 'b' -> 'b', 'a'"],
        'x = f"{a + 1}"': [],
    }.items(),
)
def test_the_changes_of_a_line(text, changes):
    assert sorted(each.change for each in mutants("file.py", text)) == sorted(changes)


def test_what_a_change_makes_stale(tmp_path):
    for name, text in {
        "p/a.py": "@njit()\ndef f(x):\n    return x\n\nLIMIT = 3\n\ndef python():\n    return f(LIMIT)\n",
        "p/b.py": "from p.a import f, LIMIT\n@njit()\ndef g():\n    f(0)\n@njit()\ndef h():\n    return LIMIT\n",
        "p/c.py": "from p import b\ndef python():\n    return b.g(1)\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    names = Names(tmp_path, ("p",))
    assert names.reached("p/a.py", 3) == {("p/a.py", "f"), ("p/b.py", "g")}
    assert names.reached("p/a.py", 5) == {("p/a.py", "LIMIT"), ("p/b.py", "h")}
    assert names.reached("p/a.py", 8) == set()
    assert set(names.leading(names.reached("p/a.py", 3))) == {("p/a.py", 8), ("p/c.py", 3)}


def test_what_was_measured_stays_true_while_code_moves(tmp_path):
    path, tests = tmp_path / "a.py", tmp_path / "test_a.py"
    path.write_text("def f(x):\n    y = x\n    return y\n\ndef g():\n    return 2\n")
    tests.write_text("")
    reach, ran = Reach(tmp_path, tmp_path / "kept"), {2: ["one", "two"], 3: ["two"], 6: [""]}
    assert reach.unknown(["test_a.py"]) == ["test_a.py"]
    reach.keep("test_a.py", {"one": 0.5, "two": 1.0}, lambda file: ran, ["a.py"])
    assert reach.unknown(["test_a.py"]) == []
    path.write_text("# more\ndef f(x):\n    y = x + 1\n    return y\n\ndef g():\n    return 2\n")
    assert reach.tests([("a.py", 4, 4)], {"test_a.py"}) == {"two": 1.0}
    assert reach.tests([("a.py", 3, 3)], {"test_a.py"}) == {"one": 0.5, "two": 1.0}  # new: those of its function
    assert reach.tests([("a.py", 7, 7)], {"test_a.py"}) == {"one": 0.5, "two": 1.0}  # of a fixture of the module
    assert reach.tests([("a.py", 4, 4)], {"test_b.py"}) == {}


def test_the_quickest_tests_within_so_many_seconds():
    tests = {"tests/b/t.py::x[1]": 0.1, "tests/b/t.py::x[2]": 0.11, "tests/b/t.py::y": 0.15, "tests/a/t.py::z": 2.0}
    assert list(chosen(tests, "a", 9.0)) == ["tests/a/t.py::z", "tests/b/t.py::x[1]", *list(tests)[1:3]]
    assert list(chosen(tests, "a", 0.26)) == ["tests/b/t.py::x[1]", "tests/b/t.py::y"]
    assert list(chosen(tests, "a", 0.0)) == ["tests/b/t.py::x[1]"]


def test_planted_bugs_apply_to_the_code_as_it_is():
    for bug in planted(ROOT):
        source = (ROOT / bug.file).read_text()
        statement = [each for each in parsed(source).body if each.lineno <= bug.line][-1]
        more = bug.applied(source).count("\n") - source.count("\n")
        changed = bug.applied(source).splitlines()[statement.lineno - 1 : statement.end_lineno + more]
        same = ast.dump(ast.parse("\n".join(changed))) == ast.dump(ast.Module([statement], []))
        assert not same, f"{bug.file}: {bug.change!r} changes nothing"


PLANTED = """[[bug]]
what = "the bound is left out"
file = "sums.py"
function = "within"
old = "x<=most"
new = "True"
"""


@pytest.mark.parametrize("old", ["x <= most", "x <= least"])
def test_a_planted_bug_is_put_in_place_or_said_to_be_gone(tmp_path, old):
    (tmp_path / "sums.py").write_text(KERNEL)
    (tmp_path / "planted.toml").write_text(PLANTED.replace("x<=most", old))
    if old not in KERNEL:
        with pytest.raises(Gone, match="the bound is left out"):
            list(planted(tmp_path, tmp_path / "planted.toml"))
        return
    (bug,) = planted(tmp_path, tmp_path / "planted.toml")
    assert bug.applied(KERNEL) == KERNEL.replace("x <= most", "(True)")


def test_what_is_explained_is_there():
    for file, entries in tomllib.loads(EXPLAINED.read_text()).items():
        there = {(each.text, each.change) for each in mutants(file, (ROOT / file).read_text())}
        for entry in entries:
            assert (entry["text"], entry["change"]) in there, f"{file}: {entry['text']}: gone, remove its entry"
            assert len(entry["why"]) > 20
