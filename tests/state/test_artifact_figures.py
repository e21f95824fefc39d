"""What a report may say of held-out answers: numbers that can be, at their bounds and one step beyond."""

import pytest

from stream_engine.data.container import Corrupt
from stream_engine.state.artifact import FIGURES, SHARES, WITHIN, check_figures, figure
from tests.support.facts import states


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_a_number_that_it_can_be(name):
    most = 1 if name in SHARES else 1e300
    for value in (None, 0, 0.0, 0.5, most):
        for report in ({name: value}, {"by_worker": {name: value}}, {"ceiling": {name: value}}):
            check_figures(report)
    for value in (-1e-12, most * (1 + 1e-9) if most == 1 else -1, True, "0.5", float("nan"), [0.5]):
        for where, report in (("report", {name: value}), ("report.by_question", {"by_question": {name: value}})):
            with pytest.raises(Corrupt) as caught:
                check_figures(report)
            assert states(str(caught.value), f"{where}.{name}: … {str(value)[:40]} … 0")


def test_figures_within_figures():
    for name in WITHIN:
        check_figures({name: None})
        with pytest.raises(Corrupt, match=f"report.{name}: .*0.5"):
            check_figures({name: 0.5})
        check_figures({name: {name: "whatever stands further inside is not read"}})
    assert figure({"ceiling": {"others": 1}}, "ceiling", "others") == 1.0
    assert figure({"ceiling": {"others": True}}, "ceiling", "others") is None
    assert figure({"ceiling": 3}, "ceiling", "others") is None and figure({}, "accuracy") is None
