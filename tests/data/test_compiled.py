"""Compiled kernels follow their source: no change of any file, version or setting leaves old machine code in use."""

import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

from stream_engine.data import kernel_cache
from tests.conftest import ROOT
from tests.support import fork_after_numba

FILES = {  # a package of three rooms: a kernel, what it calls, and a constant that it freezes
    "guard/caller.py": """
        from stream_engine.data.compiled import njit
        from stream_engine.formats.callee import with_step

        @njit(nogil=True)
        def twice(x):
            return with_step(with_step(x))
        """,
    "formats/callee.py": """
        from stream_engine.data.compiled import njit
        from stream_engine.state.constants import STEP

        @njit(inline="always")
        def with_step(x):
            return x + STEP
        """,
    "state/constants.py": "STEP = 1\n",
    "commands/unrelated.py": "VERB = 'run'\n",
    "__init__.py": "",
}
CALL = """
import json
from stream_engine.guard.caller import twice
value = twice(40)
stats = twice.stats
print(json.dumps([value, sum(stats.cache_hits.values()), sum(stats.cache_misses.values()), stats.cache_path]))
"""
COMPILED, LOADED = (0, 1), (1, 0)  # hits and misses of the cache


@pytest.fixture
def package(tmp_path) -> Path:
    """A small package with today's `data/compiled.py` and what belongs to it."""
    package = tmp_path / "stream_engine"
    for name, text in FILES.items():
        write(package / name, textwrap.dedent(text).lstrip())
    (package / "data").mkdir()
    for name in ("__init__.py", "compiled.py", "kernel_cache.py"):
        shutil.copy(kernel_cache.PACKAGE / "data" / name, package / "data")
    (tmp_path / "home").mkdir()
    return package


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def edit(path: Path, old: str, new: str) -> None:
    assert path.read_text().count(old) == 1
    path.write_text(path.read_text().replace(old, new))


def environment(package: Path, settings: dict[str, object]) -> dict[str, str]:
    """Of a process that imports the package."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "XDG_"))}
    kept |= {"PYTHONPATH": str(package.parent), "HOME": str(package.parent / "home")}
    kept["PYTHONDONTWRITEBYTECODE"] = "1"  # Python's own cache takes two texts of a size and second for one
    return kept | {name: str(value) for name, value in settings.items()}


def start(package: Path, code: str = CALL, **settings: object) -> fork_after_numba.Forked:
    folder = Path(tempfile.mkdtemp(dir=package.parent))
    return fork_after_numba.start(code, package.parent, environment(package, settings), folder)


def ended(process) -> tuple:
    out, err = process.communicate()
    assert process.returncode == 0, err
    value, hits, misses, path = json.loads(out)
    return value, (hits, misses), path and Path(path)


def run(package: Path, code: str = CALL, **settings: object) -> tuple:
    """(value, hits and misses of the cache, its folder) of a process of its own."""
    return ended(start(package, code, **settings))


def caches(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("stream-engine-*")}


# What is seen ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["beside the sources", "NUMBA_CACHE_DIR"])
def test_a_callee_changed_in_another_file_is_seen(package, tmp_path, where):
    settings = {} if where == "beside the sources" else {"NUMBA_CACHE_DIR": tmp_path / "cache"}
    folder = package / "__pycache__" if where == "beside the sources" else tmp_path / "cache"
    value, made, path = run(package, **settings)
    assert (value, made) == (42, COMPILED)
    assert path.parent.parent == folder
    assert path.name == "guard"
    assert run(package, **settings) == (42, LOADED, path)
    edit(package / "formats/callee.py", "x + STEP", "x - STEP")
    value, made, other = run(package, **settings)
    assert (value, made) == (38, COMPILED) and other == path
    edit(package / "formats/callee.py", "x - STEP", "x + STEP")
    assert run(package, **settings) == (42, LOADED, path)  # both are kept


def test_a_change_that_no_machine_code_contains_compiles_nothing(package):
    assert run(package)[:2] == (42, COMPILED)
    edit(package / "formats/callee.py", "    return", "    # a comment\n    return")
    edit(package / "guard/caller.py", "@njit", "OTHER = 3\n\n\ndef other():\n    return OTHER\n\n\n@njit")
    edit(package / "commands/unrelated.py", "run", "export")
    assert run(package)[:2] == (42, LOADED)


@pytest.mark.parametrize(
    "constant, value",
    [("10", 60), ("2**33", 40 + 2**34), ("-1", 38), ("1.0", 42), ("np.uint8(1)", 42), ("np.array([1])[0]", 42)],
)
def test_a_constant_changed_in_a_file_without_kernels_is_seen(package, constant, value):
    """Also where the value is equal and only its type differs."""
    assert run(package)[:2] == (42, COMPILED)
    text = f"import numpy as np\n\nSTEP = {constant}\n"
    write(package / "state/constants.py", text)
    assert run(package, CALL.replace("value = twice(40)", "value = float(twice(40))"))[:2] == (value, COMPILED)
    assert run(package, CALL.replace("value = twice(40)", "value = float(twice(40))"))[:2] == (value, LOADED)


RECORDS = """
from typing import NamedTuple

from stream_engine.data.compiled import njit

class Pair(NamedTuple):
    first: int
    second: int

def made(step):
    @njit(fastmath=False)
    def weigh(pair):
        return 10 * pair.first + step * pair.second
    return weigh

table = np.array([3, 4])
one, two = made(1), made(2)

@njit()
def read(at):
    return table[at]
""".replace("from typing", "import numpy as np\nfrom typing", 1)


READ = """
import json
from stream_engine.guard.records import Pair, one, read, two
value = [one(Pair(1, 6)), two(Pair(1, 6)), read(1)]
hits, misses = (sum(sum(counts.values()) for counts in each) for each in zip(
    *((each.stats.cache_hits, each.stats.cache_misses) for each in (one, two, read))))
print(json.dumps([value, hits, misses, None]))
"""


@pytest.mark.parametrize(
    "old, new, value, misses",
    [
        ("first: int\n    second: int", "second: int\n    first: int", [61, 62, 4], 2),  # two places, one type
        ("made(1), made(2)", "made(3), made(2)", [28, 22, 4], 1),  # what an enclosing function gives
        ("made(1), made(2)", "made(2), made(1)", [22, 16, 4], 0),  # both are there
        ("[3, 4]", "[3, 5]", [16, 22, 5], 1),  # an array of the module
        ("fastmath=False", "fastmath=True", [16, 22, 4], 2),  # an option of the compiler
    ],
)
def test_what_machine_code_contains_beside_the_function_is_seen(package, old, new, value, misses):
    write(package / "guard/records.py", RECORDS)
    assert run(package, READ)[:2] == ([16, 22, 4], (0, 3))
    edit(package / "guard/records.py", old, new)
    assert run(package, READ)[:2] == (value, (3 - misses, misses))


COLOURS = """
from enum import IntEnum

from stream_engine.data.compiled import njit


class Colour(IntEnum):
    RED = 2


@njit()
def twice(x):
    return x * Colour.RED
"""


def test_a_kernel_that_refers_to_something_unknown_is_compiled_by_every_process(package):
    """Nothing is loaded where it is not known what the machine code contains."""
    write(package / "guard/colours.py", COLOURS)
    for _ in range(2):
        assert run(package, CALL.replace("caller", "colours"))[:2] == (80, COMPILED)


def test_settings_of_the_compiler_have_a_cache_of_their_own(package):
    value, made, path = run(package)
    value, made, other = run(package, NUMBA_BOUNDSCHECK=1)
    assert (value, made) == (42, COMPILED) and other != path
    assert run(package, NUMBA_BOUNDSCHECK=1) == (42, LOADED, other)
    plain = "import json\nfrom stream_engine.guard.caller import twice\nprint(json.dumps([twice(40), 0, 0, None]))"
    assert run(package, plain, NUMBA_DISABLE_JIT=1)[0] == 42


def test_sources_that_change_while_a_process_runs_change_nothing(package):
    """What is compiled, kept and loaded is what the process has imported."""
    callee = package / "formats/callee.py"
    now, then = callee.read_text(), callee.read_text().replace("x + STEP", "x - STEP")
    upgrade = f"import pathlib\npathlib.Path({str(callee)!r}).write_text({then!r})\n"
    between = CALL.replace("value = twice(40)", "twice(40)\n" + upgrade + "value = twice(40.0)")
    assert run(package, between)[:2] == (42, (0, 2))  # both by what was imported
    assert run(package)[:2] == (38, COMPILED)
    callee.write_text(now)
    assert run(package)[:2] == (42, LOADED)
    assert run(package, CALL.replace("40", "40.0"))[:2] == (42, LOADED)


# Where it is ----------------------------------------------------------------------------------------------------------


def test_a_package_that_cannot_be_written_to_uses_the_users_folder(package, tmp_path):
    (package / "__pycache__").write_text("a folder cannot be here")
    value, made, path = run(package)
    assert (value, made) == (42, COMPILED) and tmp_path / "home" in path.parents
    assert path.parent.name.startswith("stream-engine-") and run(package) == (42, LOADED, path)
    blocked = {"XDG_CACHE_HOME": package / "__pycache__", "NUMBA_CACHE_DIR": package / "__pycache__"}
    for _ in range(2):
        assert run(package, **blocked) == (42, COMPILED, None)


@pytest.fixture
def for_everybody():
    """A folder that others may enter, always: pytest closes its own whenever it is started once more."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        for path in (folder, *folder.rglob("*")):
            path.chmod(path.stat().st_mode | 0o700)


def test_a_cache_that_can_only_be_read_is_read(package, for_everybody):
    """As in an image: filled when it was built, then read by another user, whose own folder gets what it lacks."""
    package = Path(shutil.copytree(package, for_everybody / "stream_engine"))
    image, home = for_everybody / "image", for_everybody / "home"
    home.mkdir()
    assert run(package, NUMBA_CACHE_DIR=image)[:2] == (42, COMPILED)
    for folder in (package, image):
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
    home.chmod(0o777)
    as_user = (  # what a compiler imports on the way is imported first: a user may not read the interpreter's folder
        "import os, numba, json\nfrom stream_engine.guard.caller import twice\n"
        "numba.njit(lambda x: x + 1)(1), numba.njit(lambda x: x + 1)(1.5)\n"
        "os.geteuid() or os.seteuid(65534)\n"
    )
    assert run(package, as_user + CALL, NUMBA_CACHE_DIR=image)[:2] == (42, LOADED)
    floats = as_user + CALL.replace("40", "40.0")
    value, made, path = run(package, floats, NUMBA_CACHE_DIR=image)
    assert (value, made) == (42, COMPILED) and home in path.parents
    assert run(package, floats, NUMBA_CACHE_DIR=image)[:2] == (42, LOADED)


def test_the_caches_of_other_libraries_stay_where_they_are(package, tmp_path):
    (tmp_path / "library.py").write_text("import numba\n\n@numba.njit(cache=True)\ndef twice(x):\n    return 2 * x\n")
    ours_too = "from stream_engine.guard.caller import twice as ours\nours(1)\n"
    code = ours_too + CALL.replace("stream_engine.guard.caller", "library")
    assert run(package, code) == (80, COMPILED, tmp_path / "__pycache__")
    assert run(package, code) == (80, LOADED, tmp_path / "__pycache__")


# Many at once ---------------------------------------------------------------------------------------------------------

TOTAL = """
from stream_engine.data.compiled import njit

@njit(nogil=True)
def total(numbers):
    found = 0
    for each in numbers:
        found += each
    return found
"""
LAYOUTS = {  # of the same ten numbers: for each of them the compiler makes other code
    "contiguous": "np.arange(10)",
    "strided": "np.repeat(np.arange(10), 2)[::2]",
    "of floats": "np.arange(10.0)",
    "of 32 bits": "np.arange(10, dtype=np.int32)",
    "read-only": "np.frombuffer(np.arange(10).tobytes(), np.int64)",
}


def totals(package: Path, cache: Path) -> list[tuple]:
    """(value, hits and misses) of a process for each layout, all at once."""
    code = "import numpy as np\n" + CALL.replace("caller import twice", "total import total as twice")
    started = [start(package, code.replace("(40)", f"({each})"), NUMBA_CACHE_DIR=cache) for each in LAYOUTS.values()]
    return [ended(process)[:2] for process in started]


def test_processes_that_fill_an_empty_cache_at_once_count_right_and_so_do_those_after_them(package, tmp_path):
    """With an index of signatures, as numba has it, two that save at once can leave one's code under the other's."""
    write(package / "guard/total.py", TOTAL)
    cache = tmp_path / "cache"
    filling = totals(package, cache)
    assert [value for value, _ in filling] == [45] * len(LAYOUTS)
    assert totals(package, cache) == [(45, LOADED)] * len(LAYOUTS)


# What is cleaned ------------------------------------------------------------------------------------------------------


def old_cache(folder: Path, digit: int, idle: float) -> Path:
    """A cache of other versions, last used so many seconds ago."""
    cache = folder / f"stream-engine-{digit:032x}"
    write(cache / "guard" / "a.nbc", "compiled code")
    os.utime(cache, times=(time.time() - idle,) * 2)
    return cache


def test_what_no_process_has_used_for_a_week_is_deleted(package, tmp_path):
    folder = tmp_path / "cache"
    stale, recent = (old_cache(folder, i, kernel_cache.WEEK + 60 * (1 - 2 * i)) for i in range(2))
    write(folder / "stream-engine-notes" / "kept", "not ours")
    os.utime(folder / "stream-engine-notes", times=(0, 0))
    write(folder / "guard_0123" / "of.another.nbi", "not ours")
    path = run(package, NUMBA_CACHE_DIR=folder)[2]
    assert caches(folder) == {path.parent.name, "stream-engine-notes", recent.name}
    assert (folder / "guard_0123" / "of.another.nbi").exists() and not stale.exists()

    # looked at again once an hour: then what became old meanwhile goes, too; but nothing that was loaded within a week
    stale = old_cache(folder, 2, kernel_cache.WEEK + 60)
    (used,) = path.glob("*.nbc")
    write(path / "caller.gone-0.nbc", "code of a kernel as it was")
    for file in path.glob("*.nbc"):
        os.utime(file, times=(time.time() - kernel_cache.WEEK - 60,) * 2)
    assert run(package, NUMBA_CACHE_DIR=folder) == (42, LOADED, path) and stale.exists()
    assert time.time() - used.stat().st_mtime < kernel_cache.DAY  # noted as used
    os.utime(path.parent, times=(time.time() - 2 * kernel_cache.HOUR,) * 2)
    assert run(package, NUMBA_CACHE_DIR=folder) == (42, LOADED, path) and not stale.exists()
    assert list(path.glob("*.nbc")) == [used]
    assert time.time() - path.parent.stat().st_mtime < kernel_cache.HOUR  # noted as used


def test_many_that_start_at_once_and_one_that_still_runs(package, tmp_path):
    """Those that start delete, all at once, the cache that another process has open; it goes on."""
    folder = tmp_path / "cache"
    first = "from stream_engine.guard.caller import twice\ntwice(1)\nprint(flush=True)\ninput()\n"
    running = subprocess.Popen(
        [sys.executable, "-c", first + "import json\nprint(json.dumps([twice(2.5), 0, 0, None]))"],
        cwd=package.parent,
        env=environment(package, {"NUMBA_CACHE_DIR": folder}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdout.readline() == "\n"
    (used,) = folder.iterdir()
    for cache in (used, *(old_cache(folder, i, 0) for i in range(20))):
        os.utime(cache, times=(0, 0))
    other = {"NUMBA_CACHE_DIR": folder, "NUMBA_LOOP_VECTORIZE": 0}
    started = [start(package, **other) for _ in range(4)]
    assert {ended(process)[0] for process in started} == {42}
    assert len(caches(folder)) == 1 and not used.exists()
    running.stdin.write("\n")
    assert ended(running)[0] == 4.5
    assert run(package, **other)[:2] == (42, LOADED)


# What it holds for ----------------------------------------------------------------------------------------------------


def kernel_files() -> list[Path]:
    return sorted(path for path in kernel_cache.PACKAGE.rglob("*.py") if "njit" in path.read_text())


def test_all_kernels_are_compiled_through_it():
    decorators = {"jit", "njit", "vectorize", "guvectorize", "cfunc", "stencil"}
    wrong = []
    for path in kernel_cache.PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text()) if b"numba" in path.read_bytes() else ast.Module([])):
            if isinstance(node, ast.ImportFrom) and node.module == "numba":
                wrong += [f"{path}: {each.name}" for each in node.names if each.name in decorators]
            if isinstance(node, ast.Import) and path.name != "kernel_cache.py":
                wrong += [f"{path}: import numba" for each in node.names if each.name == "numba"]
    assert not wrong, "take njit from stream_engine.data.compiled"


def test_of_each_kernel_it_is_known_what_its_machine_code_contains():
    code = """
import gc, importlib
for name in MODULES:
    importlib.import_module(name)
from stream_engine.data import compiled, kernel_cache
kernels = [each for each in gc.get_objects() if isinstance(each, compiled.Kernel)]
kernels = [each for each in kernels if hasattr(each.function, "options")]
for each in kernels:
    compiled.compiled(each)
    kernel_cache.contents(each.function)
print(len(kernels))
"""
    modules = [path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".") for path in kernel_files()]
    code = code.replace("MODULES", repr(modules))
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 200


SAYS_WHAT_IT_COMPILES = """
import numpy as np
from stream_engine.data.kernel_cache import KernelCache
from stream_engine.embedding import descent
save = KernelCache._save
KernelCache._save = lambda self, sig, data: (print("compiled", flush=True), save(self, sig, data))
descent._dot(np.ones(2), np.ones(2))
"""


def test_two_processes_do_not_compile_the_same_kernel(tmp_path):
    """The second waits for the first, and loads what it kept."""
    settings = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    both = [
        subprocess.Popen([sys.executable, "-c", SAYS_WHAT_IT_COMPILES], stdout=subprocess.PIPE, text=True, env=settings)
        for _ in range(2)
    ]
    said = [each.communicate(timeout=120)[0] for each in both]
    assert [each.returncode for each in both] == [0, 0]
    assert "".join(said).count("compiled") == len(list(tmp_path.rglob("*.nbc")))
    assert not list(tmp_path.rglob("*.lock"))
