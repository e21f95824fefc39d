"""Moving from cblearn: each line of the right column of the table runs, in order.

`python -m tests.manual.test_migration` prints the left column, a script for an environment that has cblearn (numpy 1).
"""

import re
import warnings

from tests.conftest import ROOT

PAGE = ROOT / "stream_engine" / "docs" / "how-to" / "from_cblearn.md"


def column(number: int) -> list[str]:
    """The code of the rows of the table, of the left (0) or the right (1) side."""
    rows = re.findall(r"^\| `(.*)` \| `(.*)` \|$", PAGE.read_text(), re.M)
    assert len(rows) >= 15
    return [row[number] for row in rows]


def run(lines: list[str]) -> None:
    names: dict = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for line in lines:
            exec(compile(line, "<row>", "exec"), names)


def test_our_side_runs():
    run(column(1))


if __name__ == "__main__":
    print("\n".join(column(0)))
