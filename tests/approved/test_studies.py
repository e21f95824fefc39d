"""What a study returns in Python: its tables and how its parts show themselves."""

from stream_engine.api.feeding import RejectedRow
from stream_engine.api.study import Study
from tests.support import told
from tests.support.approved import rows, unchanging

ASKED = [{"anchor": a, "left": b, "right": c} for a, b, c in (("d", "a", "c"), ("b", "e", "f"), ("é", "a", "nobody"))]


def test_tables(approved):
    refused = [RejectedRow("a.csv line 3", "not_distinct", "why"), RejectedRow("b.csv line 7", "missing_field", "")]
    made = Study(told.studied(), refused, "read as triplets", frames="arrow")
    lines = [repr(made), made._repr_html_(), str(len(made))]
    tables = ("objects", "questions", "refused", "models", "clusters", "workers")
    for name in tables:
        lines += ["", f"## {name}", *rows(getattr(made, name)())]
    lines += ["", "## map", repr(made.map()), *rows(made.map().to_frame())]
    lines += ["", "## hierarchy", repr(made.hierarchy()), *rows(made.hierarchy().to_frame())]
    lines += ["", "## predict", *rows(made.predict(ASKED))]
    lines += ["", "## predict, w1", *rows(made.predict(ASKED, participant="w1"))]
    lines += ["", "## predict, adds3", *rows(made.predict(ASKED, model="adds3"))]
    for kind in ("odd_one_out", "triplet"):
        lines += ["", f"## ask, {kind}", *rows(made.ask(3, type=kind))]
    lines += ["", "## ask, uncertainty", *rows(made.ask(3, strategy="uncertainty"))]
    assert unchanging("\n".join(lines)) == approved
