"""The code for PsychoPy in `how-to/experiment_software.md`, with a real study and stand-ins for its components."""

from types import SimpleNamespace

from tests.conftest import ROOT
from tests.support.collecting import ALONE
from tests.support.pages import blocks

PAGE = ROOT / "stream_engine" / "docs" / "how-to" / "experiment_software.md"


def test_psychopy_asks_and_answers_to_the_end(collecting):
    study = collecting(study="[quota]\nperson = 3\n", program=ALONE)
    begin, before, after = (
        compile(block.text.replace("http://127.0.0.1:8000", study.base), "<page>", "exec")
        for block in blocks(PAGE)
        if block.kind == "python"
    )
    shown, kept = [], []
    image = SimpleNamespace(setImage=shown.append)
    names = {
        "expInfo": {"participant": "ann"},
        "trials": SimpleNamespace(finished=False),
        "thisExp": SimpleNamespace(addData=lambda *data: kept.append(data)),
        "key_resp": SimpleNamespace(keys="right", rt=1.25),
        **dict.fromkeys(("anchor_image", "left_image", "right_image"), image),
    }
    exec(begin, names)
    for _ in range(4):
        exec(before, names)
        exec(after, names)
    assert names["trials"].finished
    assert names["continueRoutine"] is False
    assert kept == [("counted", 1)] * 3
    events = study.log()
    assert [each["chosen"] for each in events] == [each["shown"][1:] for each in events] and len(shown) == 9
    assert {(each["worker"], each["seconds"]) for each in events} == {("ann", 1.25)}
