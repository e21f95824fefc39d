"""Files in every layout, coding and container, with and without traps: none is read wrongly without a word.

Thousands of them: `python -m tests.fuzz.readings --files 5000`.
"""

from collections import Counter

import pytest

from tests.fuzz.readings import ALOUD, REFUSED, RIGHT, WRONG, outcome
from tests.support.generated_files import TRAPS, generated

SEEDS = range(60)


def test_no_generated_file_is_read_wrongly_without_a_word(tmp_path):
    files = [generated(seed) for seed in SEEDS]
    found = [(file, *outcome(file, tmp_path)) for file in files]
    assert not [(file.what, said) for file, told, said in found if told == WRONG]
    plain = Counter(told for file, told, _ in found if not file.trap)
    assert plain[RIGHT] > 0.8 * plain.total() and not plain[ALOUD]


@pytest.mark.parametrize("trap", TRAPS)
def test_a_trap_is_refused_with_the_fact(tmp_path, trap):
    file = next(each for each in map(generated, range(1000)) if each.trap == trap)
    told, said = outcome(file, tmp_path)
    assert told == REFUSED and TRAPS[trap].fact in said, said
