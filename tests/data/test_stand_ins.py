"""A kernel is a stand-in until it is called; numba sees compiled kernels only, wherever they are named."""

import subprocess
import sys
import threading

import numpy as np
import pytest

from stream_engine.data import compiled, interner, kernel_cache
from stream_engine.data.compiled import Kernel, all_compiled, for_size, njit, register_jitable
from stream_engine.data.hashing import mix64
from stream_engine.data.intrinsics import borrowed
from tests.conftest import ROOT

STEP = 3


@register_jitable
def stepped(x):
    """Names a kernel that nobody else names, by another name than its own."""
    return also_deep(x) + STEP


@njit(cache=False, inline="always")
def deep(x):
    return x * 2


also_deep = deep


@njit(cache=False)
def even(x):
    return True if x == 0 else odd(x - 1)


@njit(cache=False)
def odd(x):
    return False if x == 0 else even(x - 1)


@njit(cache=False, inline="always")
def add(x, y):
    return x + y


@njit(cache=False)
def all_of_it(x):
    return add(stepped(x), 0) if even(4) else -1


@njit(cache=False)
def applied(function, x):
    return function(x)


@njit(cache=False)
def of_borrowed(arrays):
    return mix64(borrowed(arrays)[0][0])


HELD = {"applied": applied, "odd": odd, "all_of_it": all_of_it}  # stand-ins stay here


def enclosing():
    @njit(cache=False, inline="always")
    def inner(x):
        return x + 1

    @njit(cache=False)
    def outer(x):
        return inner(inner(x))

    return inner, outer


def test_definition_and_the_functions_for_kernels_load_no_numba():
    code = (
        "import sys, numpy as np\n"
        "from stream_engine.data import hashing, intrinsics, slot_tables\n"
        "import stream_engine.order.partial_order, stream_engine.counts.adds_similarity\n"
        "assert hashing.mix64(np.array([1], np.uint64))[0] == 0x5692161D100B05E5\n"
        "assert slot_tables.fits(1, [0] * 8)\n"
        "assert intrinsics.word_at.__doc__ and intrinsics.word_at.__name__ == 'word_at'\n"
        "assert not {'numba', 'llvmlite'} & set(sys.modules)\n"
        "assert intrinsics.word_at(np.arange(9, dtype=np.uint8), 1) == 0x0807060504030201 and 'numba' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_what_a_kernel_names_is_in_place_before_it_is_compiled():
    assert all_of_it(5) == 13 and even(7) is False
    for name in ("all_of_it", "add", "deep", "also_deep", "even", "odd"):
        assert type(globals()[name]).__name__ == "CPUDispatcher", name
    assert isinstance(HELD["all_of_it"], Kernel) and HELD["all_of_it"](5) == 13
    assert HELD["all_of_it"].py_func.__name__ == "all_of_it" and len(HELD["all_of_it"].signatures) == 1
    assert HELD["all_of_it"].ready is all_of_it


def test_kernels_of_an_enclosing_function():
    inner, outer = enclosing()
    assert [outer(x) for x in (1, 2.5)] == [3, 4.5]
    assert outer.py_func.__closure__[0].cell_contents is inner.ready


def test_a_stand_in_as_an_argument():
    assert HELD["applied"](HELD["odd"], 3) is True


def test_intrinsics_and_functions_for_kernels():
    one = np.array([1], np.uint64)
    assert of_borrowed((one, one)) == mix64(one)[0]


OF_EACH = """
@njit(cache=False)
def count(numbers, times):
    for number in numbers:
        count_one(number, times)

@njit(cache=False)
def count_one(number, times):
    times[number] += 1
"""


def test_few_entries_are_left_to_python_and_more_to_the_compiler(monkeypatch):
    monkeypatch.setattr(compiled, "_max_interpreted_entries", 10)
    exec(OF_EACH, names := {"njit": njit})  # pytest looks at the attributes of what a module names
    count, count_one, times = names["count"], names["count_one"], np.zeros(3, np.int64)
    for_size(count, 6)(np.array([0, 2, 2]), times)
    assert times.tolist() == [1, 0, 2] and count.ready is None and count_one.ready is None
    assert for_size(count, 4) is not count
    with all_compiled():
        assert for_size(count, 0) is count
    assert for_size(count, 1) is count  # 11 entries in all
    count(np.array([1]), times)
    assert times.tolist() == [1, 1, 2] and count_one.ready is not None and for_size(count, 0) is count


def test_a_kernel_that_is_kept_compiled_is_loaded_earlier(monkeypatch):
    exec(OF_EACH, names := {"njit": njit})
    monkeypatch.setattr(compiled, "_max_interpreted_entries", 100)
    monkeypatch.setattr(kernel_cache, "is_kept", lambda function: function.__name__ == "count")
    count, count_one = names["count"], names["count_one"]
    assert for_size(count, 10) is not count and for_size(count, 1) is count
    assert for_size(count_one, 11) is not count_one


def test_code_is_known_to_be_kept_by_the_name_of_its_file():
    assert not kernel_cache.is_kept(test_code_is_known_to_be_kept_by_the_name_of_its_file)
    interner.Interner().ids_of(["a"])  # compiled or loaded
    assert kernel_cache.is_kept(interner._number.py_func)


SNAPSHOT = """
import hashlib, sys
from contextlib import nullcontext
from stream_engine.commands.warm_up import _full_snapshot
from stream_engine.data import compiled, interner, kernel_cache
from stream_engine.formats import expand
from stream_engine.state.snapshot import encode

with compiled.all_compiled() if sys.argv[1] == "compiled" else nullcontext():
    content = b"".join(map(bytes, encode(_full_snapshot())[0]))
print(hashlib.sha256(content).hexdigest(), isinstance(expand._fill, compiled.Kernel))
"""


def test_what_python_counts_and_what_compiled_code_counts_is_the_same():
    digests = [
        subprocess.run([sys.executable, "-c", SNAPSHOT, how], check=True, cwd=ROOT, capture_output=True, text=True)
        for how in ("compiled", "few")
    ]
    (compiled_digest, is_stand_in), (digest, is_still_stand_in) = (done.stdout.split() for done in digests)
    assert compiled_digest == digest and (is_stand_in, is_still_stand_in) == ("False", "True")


THREADS = """
import sys, threading
from stream_engine.data.compiled import import_numba

def ask():
    begin.wait()
    import_numba()
    from numba.core.compiler_lock import global_compiler_lock
    imported.append(global_compiler_lock)

sys.setswitchinterval(1e-6)
begin, imported = threading.Barrier(8), []
threads = [threading.Thread(target=ask) for _ in range(8)]
[each.start() for each in threads], [each.join() for each in threads]
assert len(imported) == 8
"""


def test_many_threads_import_numba_first():
    for _ in range(4):  # without a lock, one in four succeeds
        subprocess.run([sys.executable, "-c", THREADS], check=True, cwd=ROOT)


def test_many_threads_call_first():
    (_, kernel), values = enclosing(), []
    threads = [threading.Thread(target=lambda: values.append(kernel(40))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values == [42] * 8 and len(kernel.signatures) == 1


def test_a_name_of_no_kernel_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = HELD["odd"].no_such_name
